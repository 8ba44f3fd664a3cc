// SPDX-License-Identifier: Apache-2.0
// tributary: the command-line tool for users.
#include "absl/strings/str_cat.h"
#include "cli/terminal/command_line.h"
#include "common/base/version.h"

int main(int argc, char** argv) {
  tributary::CommandLine program(
      "Trains models through sharded parameter servers over gRPC.", "tributary",
      absl::StrCat("tributary ", tributary::kVersion));
  program.SetFooter(
      "Example, in any folder:\n"
      "  echo '{model: {mlp: {in: 16, hidden: [64], out: 1}},\n"
      "    data: {train: {synthetic: {kind: mlp_teacher, rows: 1000}},\n"
      "           batch_size: 50},\n"
      "    training: {epochs: 5, loss: mse, optimizer: adam}}' > job.yaml\n"
      "  tributary train job.yaml\n"
      "`tributary COMMAND --help`, or `tributary help COMMAND`, shows more.");
  tributary::AddTrainCommand(program);
  tributary::AddRunCommand(program);
  tributary::AddPredictCommand(program);
  tributary::AddEvaluateCommand(program);
  tributary::AddCompareCommand(program);
  tributary::AddStatusCommand(program);
  tributary::AddWhyCommand(program);
  tributary::AddLogsCommand(program);
  tributary::AddStopCommand(program);
  tributary::AddListCommand(program);
  tributary::AddCertificatesCommand(program);
  tributary::AddCheckpointCommand(program);
  tributary::AddExportCommand(program);
  tributary::AddPlanCommand(program);
  tributary::AddTraceCommand(program);
  tributary::AddReplayCommand(program);
  tributary::AddBisectCommand(program);
  tributary::AddSchemaCommand(program);
  return tributary::RunCommandLine(program, argc, argv);
}
