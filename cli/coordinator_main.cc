// SPDX-License-Identifier: Apache-2.0
// tributary-coordinator: coordinates a job whose servers and workers are
// started elsewhere.
#include "absl/strings/str_cat.h"
#include "cli/run/coordinate_command.h"
#include "cli/terminal/command_line.h"
#include "common/base/version.h"

int main(int argc, char** argv) {
  tributary::CommandLine program(
      "tributary-coordinator: leads a job whose servers and workers are\n"
      "started by hand, on any hosts, in any order.",
      "tributary-coordinator", absl::StrCat("tributary ", tributary::kVersion));
  program.SetFooter(
      "Example, with 10.0.0.1 as this machine:\n"
      "  tributary-coordinator --listen 0.0.0.0:7070 --job job.yaml\n"
      "and elsewhere, as often as the job file's cluster says:\n"
      "  tributary-server --coordinator 10.0.0.1:7070 --listen 0.0.0.0:7071\n"
      "  tributary-worker --coordinator 10.0.0.1:7070\n\n"
      "Exit codes as for tributary train.");
  tributary::AddCoordinateOptions(program);
  return tributary::RunCommandLine(program, argc, argv);
}
