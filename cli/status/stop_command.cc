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
// A coordinator on another host counts as gone if it is silent for this long.
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
    "Exit codes: 0 the job has ended, also before it was asked, or ends, 1 it\n"
    "failed, was killed, does not end or cannot be reached, 2 the command "
    "line\n"
    "is wrong.";

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

constexpr char kNothingToStop[] = "; there was nothing to stop";

// How the job has ended; NotFound: it has not ended, or this cannot be known.
absl::StatusOr<RunOutcome> Outcome(const FoundJob& job) {
  if (job.run_directory().empty()) return absl::NotFoundError("no directory");
  return ReadRunOutcome(job.run_directory());
}

// `asked`: the job has been asked to stop, before it ended.
int SayOutcome(const RunOutcome& outcome, const FoundJob& job, bool asked) {
  Say(absl::StrCat(job.Title(), ": ", outcome.Text(),
                   asked ? "" : kNothingToStop));
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
                         bool checkpoint, bool asked) {
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
                       : "",
                   asked ? "" : kNothingToStop));
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
// `asked` as in SayOutcome.
int AwaitEnd(const FoundJob& job, const StopOptions& options, bool asked) {
  const absl::Duration timeout = absl::Seconds(options.timeout_seconds);
  const absl::Duration end = SteadyNow() + timeout;
  absl::Duration heard = SteadyNow();
  std::optional<v1::JobStatusResponse> last;
  while (SteadyNow() < end) {
    const bool left = HasLeft(job, SteadyNow() - heard);  // before the look
    if (const auto outcome = Outcome(job); outcome.ok()) {
      return SayOutcome(*outcome, job, asked);
    }
    if (left) {
      return SayEndWithoutSummary(job, last, asked && options.checkpoint,
                                  asked);
    }
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

// Handles a coordinator that has not answered or does not run. This is not an
// error if the job had ended before it was asked.
int AfterSilence(const FoundJob& job, const absl::Status& silence,
                 const StopOptions& options) {
  const CoordinatorLife life = LookAgain(job);  // before the look
  if (const auto outcome = Outcome(job); outcome.ok()) {
    return SayOutcome(*outcome, job, /*asked=*/false);
  }
  const bool ends = life == CoordinatorLife::kEnds;
  if (ends && !options.no_wait) return AwaitEnd(job, options, /*asked=*/false);
  const std::string text = RefusalText(job, silence, "stop");
  ends ? Say(text) : PrintError(text);
  return ends ? kExitDone : kExitFailed;
}

// Handles a coordinator that has refused to stop the job. This is not an error
// if the job had ended before it was asked.
int AfterRefusal(const FoundJob& job, const absl::Status& refusal,
                 const StopOptions& options) {
  const absl::StatusOr<v1::JobStatusResponse> status = AskStatus(job);
  if (absl::IsUnavailable(status.status())) {
    return AfterSilence(job, status.status(), options);
  }
  if (!status.ok() || (status->phase() != v1::JOB_PHASE_DONE &&
                       status->phase() != v1::JOB_PHASE_FAILED)) {
    PrintError(refusal.message());
    return kExitFailed;
  }
  if (const auto outcome = Outcome(job); outcome.ok()) {
    return SayOutcome(*outcome, job, /*asked=*/false);
  }
  if (!options.no_wait) return AwaitEnd(job, options, /*asked=*/false);
  return SayEndWithoutSummary(job, *status, /*checkpoint=*/false,
                              /*asked=*/false);
}

int Stop(const StopOptions& options) {
  const absl::StatusOr<FoundJob> job =
      FindJob(options.choice, JobRegister(JobRegisterFolder()));
  if (!job.ok()) return RefuseChoice(job.status());
  if (job->client == nullptr) {
    return AfterSilence(*job, AskStatus(*job).status(), options);
  }
  v1::StopJobRequest request;
  request.set_checkpoint(options.checkpoint);
  request.set_reason(
      absl::StrFormat("tributary stop on %s, pid %d", HostName(), getpid()));
  const auto answer = job->client->StopJob(request, kStopTimeout);
  if (absl::IsUnavailable(answer.status())) {
    return AfterSilence(*job, answer.status(), options);
  }
  if (!answer.ok()) return AfterRefusal(*job, answer.status(), options);
  Say(absl::StrCat(job->Title(), ": ", answer->message()));
  if (options.no_wait) return kExitDone;
  return AwaitEnd(*job, options, /*asked=*/true);
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
