#include "cli/terminal/command_line.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/host/process_limits.h"

namespace tributary {
namespace {

// The full name of the command being parsed: "tributary checkpoint list".
std::string CommandName(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* sub : app.get_subcommands()) {
    absl::StrAppend(&name, " ", CommandName(*sub));
  }
  return name;
}

}  // namespace

void AddOverrides(CLI::App& app, std::vector<std::string>* overrides) {
  app.add_option("--set", *overrides,
                 "change a field of the job file, as in\n"
                 "--set training.epochs=2; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

int RunCommandLine(CLI::App& app, int argc, char** argv, const Action& action) {
  // Our own error messages already contain what gRPC would log.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  RaiseFileLimit();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    const std::string what = absl::StrReplaceAll(error.what(), {{"\n", " "}});
    PrintError(absl::StrCat(what, " (try ", CommandName(app), " --help)"));
    return kExitRefused;
  }
  if (!action) {
    PrintError(absl::StrCat("a command is wanted (try ", CommandName(app),
                            " --help)"));
    return kExitRefused;
  }
  return action();
}

}  // namespace tributary
