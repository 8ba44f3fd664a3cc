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
      "Example:\n"
      "  tributary train examples/digits.yaml\n"
      "`tributary COMMAND --help` shows more.");
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
