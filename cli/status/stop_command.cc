// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/jobs/find_job.h"
#include "cli/jobs/run_outcome.h"
#include "cli/status/ask_job.h"
#include "cli/status/lost_end.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/host/address.h"
#include "common/host/steady_waits.h"
#include "common/status/printable.h"

namespace tributary {
namespace {

constexpr absl::Duration kStopTimeout = absl::Seconds(10);
constexpr absl::Duration kStopLook = absl::Milliseconds(100);
constexpr absl::Duration kEndTimeout = absl::Milliseconds(300);
// A coordinator on another host that does not answer for this long has left.
constexpr absl::Duration kLeft = absl::Seconds(10);

constexpr char kStopDescription[] =
    "Ends a job at the next step that every worker reaches.";
constexpr char kStopFooter[] =
    "Does what Ctrl-C does to `tributary train`: the weights are saved and, "
    "if\n"
    "the job writes one at its end, a checkpoint. Waits until the job has\n"
    "ended, and then says where it can be continued.\n\n"
    "Examples:\n"
    "  tributary stop                      # the only job of yours here\n"
    "  tributary stop runs/digits --checkpoint\n"
    "  tributary stop --coordinator 10.0.0.1:7070 --no-wait\n\n"
    "Exit codes: 0 the job has ended, or ends, 1 it failed, does not end or\n"
    "cannot be reached, 2 the command line is wrong.";

struct StopOptions {
  JobChoice choice;
  bool checkpoint = false;
  bool no_wait = false;
  double timeout_seconds = 600;
};

void Say(const std::string& line) {
  std::printf("%s\n", Printable(line).c_str());
  std::fflush(stdout);
}

// How the job has ended; NotFound: it has not ended, or this cannot be known.
absl::StatusOr<RunOutcome> Outcome(const FoundJob& job) {
  if (job.run_directory().empty()) return absl::NotFoundError("no directory");
  return ReadRunOutcome(job.run_directory());
}

int SayOutcome(const RunOutcome& outcome, const FoundJob& job) {
  Say(absl::StrCat(job.Title(), ": ", outcome.Text()));
  if (outcome.checkpoint_step > 0) {
    Say(absl::StrCat("checkpoint: of step ", outcome.checkpoint_step));
  }
  if (!outcome.resume_command.empty()) {
    Say(absl::StrCat("continue with: ", outcome.resume_command));
  } else if (outcome.status == "interrupted") {
    Say("there is no checkpoint to continue from");
  }
  return outcome.status == "failed" ? kExitFailed : kExitDone;
}

int SayEndWithoutSummary(const FoundJob& job,
                         const std::optional<v1::JobStatusResponse>& last,
                         bool checkpoint) {
  KnownJob known = job.known;
  if (known.job.pid > 0) known.life = LookAtCoordinator(known.job);
  known.directory_is_gone = IsGoneDirectory(job.run_directory());
  if (const absl::Status ended =
          CheckEndWithoutSummary(job.Title(), known, last, checkpoint);
      !ended.ok()) {
    PrintError(ended.message());
    return kExitFailed;
  }
  Say(absl::StrCat(job.Title(), ": ended",
                   last && last->step() > 0
                       ? absl::StrCat(" after step ", last->step())
                       : ""));
  if (last && last->checkpoint_step() > 0) {
    Say(absl::StrCat("checkpoint: of step ", last->checkpoint_step(),
                     ", where the job writes its checkpoints"));
  }
  const bool failed = last && last->phase() == v1::JOB_PHASE_FAILED &&
                      last->cause() != v1::CAUSE_STOP;
  return failed ? kExitFailed : kExitDone;
}

// Whether the coordinator's process has ended. `silent`: how long it has not
// answered.
bool HasLeft(const FoundJob& job, absl::Duration silent) {
  const CoordinatorLife life = job.known.job.pid > 0
                                   ? LookAtCoordinator(job.known.job)
                                   : CoordinatorLife::kElsewhere;
  return life == CoordinatorLife::kGone ||
         (life == CoordinatorLife::kElsewhere && silent > kLeft);
}

// Waits until the summary is there, or the coordinator has left without one.
int AwaitEnd(const FoundJob& job, const StopOptions& options) {
  const absl::Duration timeout = absl::Seconds(options.timeout_seconds);
  const absl::Duration end = SteadyNow() + timeout;
  absl::Duration heard = SteadyNow();
  std::optional<v1::JobStatusResponse> last;
  while (SteadyNow() < end) {
    const bool left = HasLeft(job, SteadyNow() - heard);  // before the look
    if (const auto outcome = Outcome(job); outcome.ok()) {
      return SayOutcome(*outcome, job);
    }
    if (left) return SayEndWithoutSummary(job, last, options.checkpoint);
    absl::StatusOr<v1::JobStatusResponse> status = AskStatus(job, kEndTimeout);
    if (status.ok()) {
      last = *std::move(status);
      heard = SteadyNow();
    }
    absl::SleepFor(kStopLook);
  }
  PrintError(absl::StrCat(job.Title(), " has not ended within ",
                          absl::FormatDuration(timeout), ": it ",
                          AskWhy(job).answer.sentence));
  return kExitFailed;
}

int Stop(const StopOptions& options) {
  int exit_code = kExitDone;
  const std::optional<FoundJob> job =
      FindRunningJob(options.choice, "stop", &exit_code);
  if (!job) return exit_code;
  v1::StopJobRequest request;
  request.set_checkpoint(options.checkpoint);
  request.set_reason(
      absl::StrFormat("tributary stop on %s, pid %d", HostName(), getpid()));
  const auto answer = job->client->StopJob(request, kStopTimeout);
  if (absl::IsUnavailable(answer.status())) {
    PrintError(RefusalText(*job, answer.status(), "stop"));
    return kExitFailed;
  }
  if (!answer.ok()) {
    PrintError(answer.status().message());
    return kExitFailed;
  }
  Say(absl::StrCat(job->Title(), ": ", answer->message()));
  if (options.no_wait) return kExitDone;
  return AwaitEnd(*job, options);
}

}  // namespace

void AddStopCommand(CommandLine& program) {
  auto options = std::make_shared<StopOptions>();
  CommandLine stop = program.AddCommand("stop", kStopDescription);
  stop.SetFooter(kStopFooter);
  AddJobChoice(stop, &options->choice);
  stop.AddFlag("--checkpoint", &options->checkpoint,
               "only if the job writes a checkpoint of its last step; "
               "otherwise\nthe job goes on, and an error says why");
  stop.AddFlag("--no-wait", &options->no_wait,
               "do not wait until the job has ended");
  stop.AddOption("--timeout", &options->timeout_seconds,
                 "seconds to wait for the end")
      .ShowDefault()
      .Positive();
  stop.SetAction([options] { return Stop(*options); });
}

}  // namespace tributary
