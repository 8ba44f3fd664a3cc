// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/jobs/find_job.h"
#include "cli/logs/log_merge.h"
#include "cli/status/ask_job.h"
#include "cli/terminal/append_file.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/host/small_file.h"
#include "coordinator/run/run_directory.h"

namespace tributary {
namespace {

constexpr absl::Duration kFollowLook = absl::Milliseconds(200);

constexpr char kLogsDescription[] =
    "Shows the logs of a job's processes, merged in the order of time.";
constexpr char kLogsFooter[] =
    "Reads logs/ of the run directory. It has the logs of the coordinator and "
    "of\n"
    "all processes that `tributary train` and `tributary run` have started, "
    "on\n"
    "other hosts, too. A daemon that was started by hand logs where it was\n"
    "started.\n\n"
    "Examples:\n"
    "  tributary logs                            # the only job of yours here\n"
    "  tributary logs runs/digits --role worker --rank 1 --since 10m\n"
    "  tributary logs runs/digits --follow\n\n"
    "Exit codes: 0, 1 the job has no logs here, 2 the command line is wrong, "
    "or\n"
    "names a process that has no log here.";

struct LogsOptions {
  JobChoice choice;
  std::string role;
  int64_t index = -1;
  std::string since;
  bool follow = false;
};

// The current time, from which --since counts back.
absl::Time TimeOfDay() {
  return absl::FromChrono(std::chrono::system_clock::now());
}

bool HasEnded(const FoundJob& job) {
  if (RunDirectory::HasSummary(job.run_directory())) return true;
  return job.known.job.pid > 0 &&
         LookAtCoordinator(job.known.job) == CoordinatorLife::kGone;
}

// Returns false if the reader of the output has gone.
bool ShowLines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text.empty() || AppendTo(STDOUT_FILENO, "the output", text).ok();
}

// Prints that the job has no logs on this machine.
int RefuseWithoutLogs(const FoundJob& job) {
  const std::string& run = job.run_directory();
  std::error_code error;
  PrintError(
      !run.empty() && std::filesystem::is_directory(run, error)
          ? absl::StrCat(run,
                         " has no logs folder any more, so there is "
                         "nothing to show")
          : absl::StrCat(
                "the logs of ", job.Title(),
                " are not on this machine; name its run directory, where it "
                "is"));
  return kExitFailed;
}

// Prints that the job has logs, but none of the requested processes.
int RefuseProcess(const LogsOptions& options, const std::string& folder) {
  const std::vector<std::string> logged = LoggedProcesses(folder);
  if (logged.empty()) {
    PrintError(absl::StrCat(folder, " is empty"));
    return kExitFailed;
  }
  PrintError(absl::StrCat(
      folder, " has no log of ",
      options.role.empty() ? "a process" : absl::StrCat("a ", options.role),
      options.index < 0 ? "" : absl::StrCat(" with the number ", options.index),
      "; it has those of ", absl::StrJoin(logged, ", ")));
  return kExitRefused;
}

int Logs(const LogsOptions& options) {
  LogFilter filter{.role = options.role};
  if (options.index >= 0) filter.index = options.index;
  if (!options.since.empty()) {
    const auto since = ParseSince(options.since, TimeOfDay());
    if (!since.ok()) return RefuseChoice(since.status());
    filter.since = *since;
  }
  const absl::StatusOr<FoundJob> job =
      FindJob(options.choice, JobRegister(JobRegisterFolder()));
  if (!job.ok()) return RefuseChoice(job.status());
  const std::string folder = job->run_directory() + "/logs";
  std::error_code error;
  if (job->run_directory().empty() ||
      !std::filesystem::is_directory(folder, error)) {
    return RefuseWithoutLogs(*job);
  }
  if (const absl::Status may = CheckReadable(folder); !may.ok()) {
    return RefuseChoice(may);
  }
  LogMerge merge(folder, std::move(filter));
  while (true) {
    const bool last = !options.follow || HasEnded(*job);
    const bool read = ShowLines(merge.Take(last));
    if (last && !merge.has_files()) return RefuseProcess(options, folder);
    if (!read || last) return kExitDone;
    absl::SleepFor(kFollowLook);
  }
}

}  // namespace

void AddLogsCommand(CommandLine& program) {
  auto options = std::make_shared<LogsOptions>();
  CommandLine logs = program.AddCommand("logs", kLogsDescription);
  logs.SetFooter(kLogsFooter);
  AddJobChoice(logs, &options->choice);
  logs.AddOption("--role", &options->role, "only processes of this role")
      .OneOf({"coordinator", "server", "worker", "program"});
  logs.AddOption("--rank,--index", &options->index,
                 "only the worker with this rank, or the server with this "
                 "index")
      .NonNegative();
  logs.AddOption("--since", &options->since,
                 "only lines since then: how long ago, as in 10m, or a time,\n"
                 "as in 2026-11-21T08:23:08Z");
  logs.AddFlag("--follow,-f", &options->follow,
               "show further lines as they are written, until the job ends");
  logs.SetAction([options] { return Logs(*options); });
}

}  // namespace tributary
