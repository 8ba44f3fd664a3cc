// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/run/job_run.h"
#include "cli/status/status_text.h"
#include "cli/terminal/append_file.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "common/member/coordinator_client.h"
#include "coordinator/page/status_json.h"

namespace tributary {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr double kShortestWatchSeconds = 0.1;
constexpr double kLongestWatchSeconds = 3600;

constexpr char kDescription[] =
    "Shows a running job: who is there, step, rates, what waits for whom.";
constexpr char kFooter[] =
    "On a terminal --watch draws in place; into a pipe it writes one block\n"
    "after the other, each under its time.\n\n"
    "Examples, with the address that train or the coordinator prints first:\n"
    "  tributary status --coordinator 127.0.0.1:40123\n"
    "  tributary status --coordinator 10.0.0.1:7070 --watch\n"
    "  tributary status --coordinator 10.0.0.1:7070 --watch 10 --json\n\n"
    "Exit codes: 0 the job lives or is done, 1 it failed or cannot be "
    "reached,\n"
    "2 the command line is wrong.";

struct StatusOptions {
  std::string coordinator = "127.0.0.1:7070";
  bool watch = false;
  double watch_seconds = 1;
  bool json = false;
};

bool Over(const v1::JobStatusResponse& status) {
  return status.phase() == v1::JOB_PHASE_DONE ||
         status.phase() == v1::JOB_PHASE_FAILED;
}

std::string Page(const v1::JobStatusResponse& status,
                 const StatusOptions& options) {
  if (options.json) return StatusJson(status, /*one_line=*/options.watch);
  const std::string text = StatusText(status);
  if (!options.watch) return text;
  if (isatty(STDOUT_FILENO) == 1) return RedrawnInPlace(text);
  return absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ\n", absl::Now(),
                                       absl::UTCTimeZone()),
                      text, "\n");
}

std::string WhyNoStatus(const std::string& address,
                        const absl::Status& status) {
  if (absl::IsUnimplemented(status)) {
    return absl::StrCat(address, " is not the address of a coordinator");
  }
  return absl::StrCat(status.message(), "; has the job ended?");
}

int ShowStatus(const StatusOptions& options) {
  auto client = CoordinatorClient::Create({.address = options.coordinator});
  if (!client.ok()) {
    PrintError(client.status().message());
    return kExitRefused;
  }
  while (true) {
    const auto status = (*client)->GetJobStatus(kTimeout);
    if (!status.ok()) {
      PrintError(WhyNoStatus(options.coordinator, status.status()));
      return kExitFailed;
    }
    // The reader of the output has gone, so watching ends.
    const bool read =
        AppendTo(STDOUT_FILENO, "the output", Page(*status, options)).ok();
    if (!options.watch || Over(*status) || !read) {
      return status->phase() == v1::JOB_PHASE_FAILED ? kExitFailed : kExitDone;
    }
    absl::SleepFor(absl::Seconds(options.watch_seconds));
  }
}

// Reads the value of --watch: nothing, or seconds.
void ReadWatch(const CLI::results_t& results, StatusOptions* options) {
  options->watch = true;
  const std::string text = results.empty() ? "" : results.back();
  if (text.empty() || text == "true") return;  // CLI11's text for no value
  if (!absl::SimpleAtod(text, &options->watch_seconds) ||
      !(options->watch_seconds >= kShortestWatchSeconds &&
        options->watch_seconds <= kLongestWatchSeconds)) {
    throw CLI::ValidationError(
        "--watch", absl::StrCat("seconds must be ", kShortestWatchSeconds,
                                " to ", kLongestWatchSeconds, ", got ", text));
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
  status
      ->add_option(
          "--watch",
          [options](const CLI::results_t& results) {
            ReadWatch(results, options.get());
            return true;
          },
          "show it again every second, or so many, until the job is over")
      ->type_name("[SECONDS]")
      ->expected(0, 1);
  status->add_flag("--json", options->json,
                   "as a JSON object; with --watch one object a line");
  status->callback([options, action] {
    *action = [options] { return ShowStatus(*options); };
  });
}

}  // namespace tributary
