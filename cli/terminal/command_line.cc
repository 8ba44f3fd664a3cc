// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/command_line.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/command_line/parse_command_line.h"
#include "common/host/process_limits.h"
#include "common/job/job_keys.h"

namespace tributary {
namespace {

constexpr char kOverrideType[] = "KEY=VALUE";

}  // namespace

void AddOverrides(CLI::App& app, std::vector<std::string>* overrides) {
  app.add_option("--set", *overrides,
                 "change a field of the job file, as in\n"
                 "--set training.epochs=2; may be repeated")
      ->type_name(kOverrideType)
      ->allow_extra_args(false);
}

int RunCommandLine(CLI::App& app, int argc, char** argv, const Action& action) {
  RaiseFileLimit();
  // A word after the command is an argument, even if it is a command's name.
  app.require_subcommand(0, 1);
  const ValueSources sources = {{kOverrideType, JobKeys}};
  if (const auto ended = ParseCommandLine(app, argc, argv, sources)) {
    return *ended;
  }
  if (!action) {
    PrintError(
        absl::StrCat("give a command (try ", CommandName(app), " --help)"));
    return kExitRefused;
  }
  return action();
}

}  // namespace tributary
