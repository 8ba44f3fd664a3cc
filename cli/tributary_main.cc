// SPDX-License-Identifier: Apache-2.0
// tributary: the command-line tool for users.
#include "cli/terminal/command_line.h"

int main(int argc, char** argv) {
  CLI::App app("Trains models through sharded parameter servers over gRPC.",
               "tributary");
  app.footer(
      "Example:\n"
      "  tributary train examples/digits.yaml\n"
      "`tributary COMMAND --help` shows more.");
  app.set_version_flag("--version", "tributary " TRIBUTARY_VERSION);
  tributary::Action action;
  tributary::AddTrainCommand(app, &action);
  tributary::AddRunCommand(app, &action);
  tributary::AddPredictCommand(app, &action);
  tributary::AddEvaluateCommand(app, &action);
  tributary::AddCompareCommand(app, &action);
  tributary::AddStatusCommand(app, &action);
  tributary::AddWhyCommand(app, &action);
  tributary::AddLogsCommand(app, &action);
  tributary::AddStopCommand(app, &action);
  tributary::AddListCommand(app, &action);
  tributary::AddCertificatesCommand(app, &action);
  tributary::AddCheckpointCommand(app, &action);
  tributary::AddExportCommand(app, &action);
  tributary::AddPlanCommand(app, &action);
  tributary::AddTraceCommand(app, &action);
  tributary::AddReplayCommand(app, &action);
  tributary::AddBisectCommand(app, &action);
  tributary::AddSchemaCommand(app, &action);
  return tributary::RunCommandLine(app, argc, argv, action);
}
