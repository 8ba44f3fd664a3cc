// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/terminal/append_file.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/exit_codes.h"
#include "common/job/yaml/job_schema.h"

namespace tributary {

void AddSchemaCommand(CommandLine& program) {
  CommandLine schema = program.AddCommand(
      "schema", "Prints a JSON Schema of the job file, for editors.");
  schema.SetFooter(
      "An editor that knows the schema completes keys and marks mistakes.\n\n"
      "Example:\n"
      "  tributary schema > tributary.schema.json\n"
      "and as the first line of a job file, for the YAML language server:\n"
      "  # yaml-language-server: $schema=tributary.schema.json");
  schema.SetAction([] {
    return AppendTo(STDOUT_FILENO, "the output", JobSchema()).ok()
               ? kExitDone
               : kExitFailed;
  });
}

}  // namespace tributary
