// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/job_run.h"

#include <csignal>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/jobs/run_outcome.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/base/failpoint.h"
#include "common/base/version.h"
#include "common/host/memory/peak_memory.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr absl::Duration kProgressLook = absl::Milliseconds(100);
constexpr int64_t kLookMicros = 1'000'000;

std::string Utc(double wall_seconds) {
  const std::time_t seconds = static_cast<std::time_t>(wall_seconds);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

JobRun::JobRun(Options options)
    : options_(std::move(options)),
      start_micros_(options_.clock->NowMicros()),
      start_wall_seconds_(WallSeconds()),
      screen_(&options_.job, options_.start.step, options_.clock,
              options_.output.quiet),
      checkpoints_(&options_.job, &options_.start, options_.keys.checkpoint,
                   &screen_.console()),
      recorder_(&options_) {}

absl::StatusOr<std::unique_ptr<JobRun>> JobRun::Start(
    Options options, std::unique_ptr<RunDirectory> directory) {
  if (!options.keys.checkpoint.empty() &&
      !options.listening.access.encrypted()) {
    return absl::InvalidArgumentError(
        "--checkpoint-key wants TLS, because servers and workers get the key, "
        "and others could read it in clear text");
  }
  const std::string lost = ForgetLostBest(options.job, &options.start);
  std::unique_ptr<JobRun> run(new JobRun(std::move(options)));
  SilenceLog();  // until the log file exists
  TRIBUTARY_ASSIGN_OR_RETURN(const std::optional<v1::CoordinatorState> earlier,
                             run->FindEarlier());
  if (earlier) {
    TRIBUTARY_RETURN_IF_ERROR(run->Continue(*earlier));
  }
  TRIBUTARY_RETURN_IF_ERROR(run->options_.listening.access.CheckListen(
      run->options_.listening.address));
  if (!lost.empty()) run->console().Note(lost);
  TRIBUTARY_ASSIGN_OR_RETURN(run->coordinator_,
                             Coordinator::Start(run->OptionsOfCoordinator(
                                 earlier ? &*earlier : nullptr)));
  TRIBUTARY_ASSIGN_OR_RETURN(
      run->pages_,
      RunPages::Start({.listen = run->options_.metrics.listen,
                       .access = run->options_.metrics.access,
                       .clock = run->options_.clock},
                      run->coordinator_.get(), &run->recorder_.history()));
  const bool begins = !earlier && run->options_.start.step == 0;
  if (!run->options_.job.checkpoint().directory().empty()) {
    TRIBUTARY_RETURN_IF_ERROR(run->ClaimCheckpoints(begins));
    if (!earlier && !begins) {
      TRIBUTARY_RETURN_IF_ERROR(run->checkpoints_.CheckNothingElse(
          run->CheckpointDirectory(),
          run->coordinator_->control().output().BestStep()));
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(
      run->recorder_.Open(std::move(directory), run->start_wall_seconds_));
  TRIBUTARY_RETURN_IF_ERROR(run->Announce());
  if (earlier) run->TellTakeover();
  TRIBUTARY_RETURN_IF_ERROR(run->ClaimCheckpoints(begins));
  const std::string checkpoints = run->CheckpointDirectory();
  if (!earlier && run->options_.start.step > 0 && !checkpoints.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(run->checkpoints_.Resume(
        checkpoints, run->coordinator_->lineage(),
        run->coordinator_->control().output().BestStep()));
  }
  run->coordinator_->control().AllowStart(checkpoints);
  return run;
}

Coordinator::Options JobRun::OptionsOfCoordinator(
    const v1::CoordinatorState* earlier) {
  Coordinator::Options coordinator;
  if (earlier != nullptr) {
    coordinator.predecessor.state = earlier;
    const RunDirectory& directory = recorder_.directory();
    coordinator.predecessor.recorded = directory.recorded();
    coordinator.predecessor.events = directory.earlier_events();
    coordinator.predecessor.evaluations = recorder_.evaluations();
  }
  RunRecorder* const recorder = &recorder_;
  coordinator.savers.state = [recorder](const v1::CoordinatorState& state) {
    return recorder->SaveState(state);
  };
  coordinator.savers.evaluations =
      [recorder](const std::vector<EvaluationRecord>& evaluations) {
        return recorder->SaveEvaluations(evaluations);
      };
  coordinator.savers.weights = [recorder](const FinalWeights& weights) {
    return recorder->SaveWeights(weights);
  };
  coordinator.calls.guard =
      std::make_shared<CallGuard>(options_.listening.access.Guard());
  coordinator.calls.proof = options_.listening.access.Proof();
  coordinator.calls.reflection = options_.listening.reflection;
  coordinator.checkpoint_key = options_.keys.checkpoint;
  coordinator.listen = options_.listening.address;
  coordinator.listening = options_.listening.sockets;
  coordinator.job = options_.job;
  coordinator.clock = options_.clock;
  coordinator.timeouts.start = options_.start_timeout;
  coordinator.timeouts.lease =
      absl::Seconds(options_.job.cluster().lease_seconds());
  coordinator.timeouts.loss =
      absl::Seconds(StrategyOf(options_.job).timeout_seconds);
  coordinator.started_micros = static_cast<int64_t>(1e6 * start_wall_seconds_);
  coordinator.start = options_.start;
  coordinator.hold_start = true;  // until the run directory exists
  return coordinator;
}

absl::Status JobRun::Announce() {
  RunDirectory& directory = recorder_.directory();
  LogOptions log = options_.output.log;
  log.role = "coordinator";
  log.file = directory.LogPath("coordinator");
  TRIBUTARY_RETURN_IF_ERROR(SetUpLog(log));
  spdlog::info("tributary {}: coordinator of \"{}\" at {}", kVersion,
               options_.job.name(), coordinator_->address());
  Register();
  // Only now, because Register removes the keys in folders of killed runs.
  if (options_.keys.run != nullptr) {
    TRIBUTARY_RETURN_IF_ERROR(
        options_.keys.run->Save(directory.path(), PeerRole::kOperator)
            .status());
  }
  directory.lock().SetAddress(coordinator_->address());
  return absl::OkStatus();
}

absl::Status JobRun::ClaimCheckpoints(bool begins) {
  const std::string directory = CheckpointDirectory();
  if (checkpoints_.claimed() || directory.empty()) return absl::OkStatus();
  return checkpoints_.Claim(directory, coordinator_->lineage(), begins);
}

void JobRun::Follow(const std::function<std::string()>& watch) {
  while (true) {
    const JobUpdate update =
        coordinator_->control().WaitForUpdate(kProgressLook);
    update_.phase = update.phase;
    update_.message = update.message;
    update_.total_steps = update.total_steps;
    update_.course = update.course;
    update_.deposed = update.deposed;
    if (!update_.deposed.empty()) break;  // another coordinator owns the files
    Record(update);
    if (recorder_.EnvironmentIsDue()) {
      HeedDisk(recorder_.RecordEnvironment(Workers()));
    }
    screen_.Show(update);
    if (update_.phase == v1::JOB_PHASE_DONE || failed()) break;
    StopWhenAsked();
    if (const int64_t now = options_.clock->NowMicros();
        now - look_micros_ >= kLookMicros) {
      look_micros_ = now;
      LookAfterDirectory();
    }
    if (const std::string failure = watch(); !failure.empty()) {
      coordinator_->control().Fail(failure);
    }
  }
  console().End();
  recorder_.EndRecording();
}

void JobRun::StopWhenAsked() {
  if (stop_asked_ || Interrupts::Requested() == 0) return;
  stop_asked_ = true;
  if (update_.phase != v1::JOB_PHASE_WAITING) {
    console().Note("stopping at the next common step; a later signal ends now");
  }
  coordinator_->control().RequestStop();
}

RunSummary JobRun::Summarize(const std::string& cause) {
  RunSummary summary;
  summary.name = options_.job.name();
  summary.started = Utc(start_wall_seconds_);
  summary.totals = coordinator_->control().Totals();
  summary.total_steps = update_.total_steps;
  summary.evaluations = recorder_.evaluations();
  const v1::JobStatusResponse status = coordinator_->control().Snapshot();
  summary.members.assign(status.members().begin(), status.members().end());
  summary.coordinator_peak_memory_bytes = PeakMemoryBytes();
  recorder_.SaveTargets(RunPages::kNoTargets);  // all members have exited
  pages_->KeepStatus(status);
  coordinator_.reset();  // its thread may still use the weights
  summary.weights_sha256 = recorder_.weights_sha256();
  summary.status = failed() ? "failed" : "done";
  if (failed()) {
    summary.message = cause.empty() ? update_.message : cause;
    if (cause.empty()) summary.cause = status.cause();
  }
  if (summary.totals.stopped_unbegun || (!failed() && summary.totals.stopped)) {
    summary.status = "interrupted";
  }
  summary.seconds =
      static_cast<double>(options_.clock->NowMicros() - start_micros_) / 1e6;
  summary.resume_command = ResumeCommand(summary, /*anywhere=*/true);
  summary.run_directory = AbsolutePath(directory().path());
  return summary;
}

int JobRun::Conclude(const std::string& cause) {
  RunDirectory& directory = recorder_.directory();
  if (!update_.deposed.empty()) {
    directory.lock().Leave();
    PrintError(update_.deposed);
    return kExitFailed;
  }
  TRIBUTARY_FAILPOINT("coordinator-summary");
  if (options_.keys.run != nullptr) RunKeys::Remove(directory.path());
  // Servers report their last step when they learn that the job is over.
  JobUpdate last = coordinator_->control().LastUpdate();
  if (const absl::Status status = directory.AddTrace(last.trace);
      !status.ok()) {
    spdlog::warn("the trace may lack events: {}",
                 std::string(status.message()));
  }
  last.trace.clear();
  // Workers of a failed job have reported their last steps by now, unless they
  // were lost.
  Record(last);
  RunSummary summary = Summarize(cause);
  RunCheckpoints::SavedBest best;
  if (!failed()) {
    best = checkpoints_.SaveBest(summary.totals.best, directory.path());
    summary.best_weights_sha256 = best.weights_sha256;
  }
  const absl::Status saved = SaveSummary(summary);
  PrintResult(summary, best.note);
  registered_.reset();
  checkpoints_.Release();
  pages_->AwaitReader(failed(), &console());
  if (!saved.ok()) {
    if (saved.message() != summary.message) PrintError(saved.message());
    return kExitFailed;
  }
  if (summary.status == "interrupted") {
    // StopJob has asked for the stop, or a signal to an earlier coordinator.
    const int signal = Interrupts::Requested();
    return 128 + (signal == 0 ? SIGINT : signal);
  }
  return failed() ? kExitFailed : kExitDone;
}

void JobRun::PrintResult(const RunSummary& summary, const std::string& best) {
  if (summary.status == "failed") PrintError(summary.message);
  if (summary.status == "interrupted" && failed()) {
    PrintError(summary.message);
  } else if (summary.status != "failed") {
    screen_.ShowResult(summary, directory().path());
    if (!best.empty()) console().Note(best);
  }
  if (const JobTotals& totals = summary.totals; totals.skipped_steps > 0) {
    console().Note(SkippedText(totals.skipped_steps, totals.steps));
  }
  console().Note(absl::StrCat("run directory: ", directory().path()));
  if (summary.status == "done") return;
  if (const std::string command = ResumeCommand(summary, /*anywhere=*/false);
      !command.empty()) {
    console().Note(absl::StrCat("continue with: ", command));
  } else if (summary.status == "interrupted") {
    console().Note("there is no checkpoint to continue from");
  }
}

}  // namespace tributary
