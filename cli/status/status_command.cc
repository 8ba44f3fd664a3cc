// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/jobs/find_job.h"
#include "cli/status/ask_job.h"
#include "cli/status/status_text.h"
#include "cli/terminal/append_file.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/status/printable.h"
#include "coordinator/page/status_json.h"

namespace tributary {
namespace {

constexpr double kShortestWatchSeconds = 0.1;
constexpr double kLongestWatchSeconds = 3600;

constexpr char kStatusDescription[] =
    "Shows a running job: who is there, step, rates, what waits for whom.";
constexpr char kStatusFooter[] =
    "On a terminal --watch draws in place; into a pipe it writes one block\n"
    "after the other, each under its time.\n\n"
    "Examples, the last two with the address that the coordinator prints:\n"
    "  tributary status                    # the only job of yours here\n"
    "  tributary status runs/digits --watch\n"
    "  tributary status --coordinator 10.0.0.1:7070\n"
    "  tributary status --coordinator 10.0.0.1:7070 --watch 10 --json\n\n"
    "Exit codes: 0 the job lives or is done, 1 it failed or cannot be "
    "reached,\n"
    "2 the command line is wrong.";

struct StatusOptions {
  JobChoice choice;
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

// Says why there is no status of the job, and how it has ended if its run
// directory says so.
int ShowEnd(const FoundJob& job, const absl::Status& why) {
  const AskedWhy asked = WhyGone(job, why);
  if (asked.well && asked.answer.cause == WhyCause::kDone) {
    printf("%s\n",
           Printable(absl::StrCat(job.Title(), " ", asked.answer.sentence))
               .c_str());
    return kExitDone;
  }
  PrintError(job.run_directory().empty()
                 ? UnknownEndText(why)
                 : absl::StrCat(job.Title(), " ", asked.answer.sentence));
  return kExitFailed;
}

int ShowStatus(const StatusOptions& options) {
  const absl::StatusOr<FoundJob> job =
      FindJob(options.choice, JobRegister(JobRegisterFolder()));
  if (!job.ok()) return RefuseChoice(job.status());
  while (true) {
    const auto status = AskStatus(*job);
    if (!status.ok()) return ShowEnd(*job, status.status());
    // If the reader of the output has gone, watching ends.
    const bool read =
        AppendTo(STDOUT_FILENO, "the output", Page(*status, options)).ok();
    if (!options.watch || Over(*status) || !read) {
      return status->phase() == v1::JOB_PHASE_FAILED ? kExitFailed : kExitDone;
    }
    absl::SleepFor(absl::Seconds(options.watch_seconds));
  }
}

// Reads the value of --watch: nothing, or seconds. Returns an error text;
// empty: the value is valid.
std::string ReadWatch(const std::string& text, StatusOptions* options) {
  options->watch = true;
  if (text.empty()) return "";
  if (absl::SimpleAtod(text, &options->watch_seconds) &&
      options->watch_seconds >= kShortestWatchSeconds &&
      options->watch_seconds <= kLongestWatchSeconds) {
    return "";
  }
  return absl::StrCat("seconds must be ", kShortestWatchSeconds, " to ",
                      kLongestWatchSeconds, ", got ", text);
}

}  // namespace

void AddStatusCommand(CommandLine& program) {
  auto options = std::make_shared<StatusOptions>();
  CommandLine status = program.AddCommand("status", kStatusDescription);
  status.SetFooter(kStatusFooter);
  AddJobChoice(status, &options->choice);
  status
      .AddOptionalValue(
          "--watch",
          [options](const std::string& text) {
            return ReadWatch(text, options.get());
          },
          "show it again every second, or so many, until the job is over")
      .TypeName("[SECONDS]");
  status.AddFlag("--json", &options->json,
                 "as a JSON object; with --watch one object a line");
  status.SetAction([options] { return ShowStatus(*options); });
}

}  // namespace tributary
