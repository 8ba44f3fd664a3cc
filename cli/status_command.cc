#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/job_run.h"
#include "cli/status_text.h"
#include "common/control/coordinator_client.h"

namespace tributary {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);

constexpr char kDescription[] =
    "Shows a running job: who is there, step, rates, what waits for whom.";
constexpr char kFooter[] =
    "Examples, with the address that train or the coordinator prints first:\n"
    "  tributary status --coordinator 127.0.0.1:40123\n"
    "  tributary status --coordinator 10.0.0.1:7070 --watch\n\n"
    "Exit codes: 0 the job lives or is done, 1 it failed or cannot be "
    "reached,\n"
    "2 the command line is wrong.";

struct StatusOptions {
  std::string coordinator = "127.0.0.1:7070";
  bool watch = false;
};

bool Over(const v1::JobStatusResponse& status) {
  return status.phase() == v1::JOB_PHASE_DONE ||
         status.phase() == v1::JOB_PHASE_FAILED;
}

int ShowStatus(const StatusOptions& options) {
  auto client = CoordinatorClient::Create({.address = options.coordinator});
  if (!client.ok()) {
    PrintError(client.status().message());
    return kExitRefused;
  }
  const bool in_place = options.watch && isatty(STDOUT_FILENO) == 1;
  while (true) {
    const auto status = (*client)->GetJobStatus(kTimeout);
    if (!status.ok()) {
      PrintError(status.status().message());
      return kExitFailed;
    }
    if (in_place) printf("\x1b[H\x1b[J");  // to the corner, and all below away
    printf("%s", StatusText(*status).c_str());
    fflush(stdout);
    if (!options.watch || Over(*status)) {
      return status->phase() == v1::JOB_PHASE_FAILED ? kExitFailed : kExitDone;
    }
    absl::SleepFor(absl::Seconds(1));
  }
}

}  // namespace

void AddStatusCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* status = app.add_subcommand("status", kDescription);
  status->footer(kFooter);
  status
      ->add_option("--coordinator", options->coordinator,
                   "HOST:PORT of the coordinator")
      ->capture_default_str();
  status->add_flag("--watch", options->watch,
                   "show it again every second until the job is over");
  status->callback([options, action] {
    *action = [options] { return ShowStatus(*options); };
  });
}

}  // namespace tributary
