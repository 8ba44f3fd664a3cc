// How JobRun writes its files, and how it waits while the disk is full.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/run/job_run.h"
#include "common/host/steady_waits.h"
#include "common/job/job_options.h"
#include "coordinator/service/job_metrics.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// How long the last steps may take to be written before the job is done.
constexpr absl::Duration kLastRecords = absl::Seconds(10);
// Pause between two attempts to write to a full disk.
constexpr absl::Duration kRoom = absl::Milliseconds(200);

}  // namespace

void JobRun::Record(const JobUpdate& update) {
  for (const StepRecord& record : update.steps) {
    last_step_ = record.step;
    samples_ += record.samples;
  }
  evaluations_.insert(evaluations_.end(), update.evaluations.begin(),
                      update.evaluations.end());
  if (!update.trace.empty()) HeedDisk(directory_->AddTrace(update.trace));
  if (update.steps.empty() && update.evaluations.empty()) return;
  const double now = WallSeconds();
  absl::Status status = directory_->AddSteps(update.steps, now);
  status.Update(directory_->AddEvaluations(update.evaluations, now));
  HeedDisk(status);
  absl::MutexLock lock(&record_mu_);
  recorded_step_ = last_step_;
}

void JobRun::HeedDisk(const absl::Status& written) {
  const bool full = absl::IsResourceExhausted(written);
  if (!written.ok() && !full)
    return coordinator_->control().Fail(written.message());
  std::string note;
  if (full && !disk_full_) {
    note = absl::StrCat("the disk is full; what is recorded waits for room: ",
                        written.message());
  } else if (!full && disk_full_) {
    note = "there is room on the disk again: what had waited is recorded";
  }
  disk_full_ = full;
  if (const int64_t lost = directory_->given_up(); lost > given_up_ && !full) {
    absl::StrAppend(&note, "; ", lost - given_up_,
                    " of the oldest lines and events were too many to keep");
    given_up_ = lost;
  }
  if (note.empty()) return;
  if (full) return coordinator_->control().SetWaits(note);  // SetWaits shows it
  coordinator_->control().SetWaits("");
  spdlog::warn("{}", note);
  console_.Note(note);
}

void JobRun::LookAfterDirectory() {
  HeedDisk(directory_->Flush());
  SaveTargets(
      ScrapeTargetsJson(coordinator_->control().Snapshot(), metrics_address()));
}

absl::Status JobRun::SaveSummary(const RunSummary& summary) {
  const int64_t start = options_.clock->NowMicros();
  const absl::Duration limit =
      absl::Seconds(StrategyOf(options_.job).timeout_seconds);
  for (bool told = false;; told = true) {
    absl::Status status = directory_->Flush();
    if (status.ok()) status = directory_->SaveSummary(summary);
    const absl::Duration spent =
        absl::Microseconds(options_.clock->NowMicros() - start);
    if (!absl::IsResourceExhausted(status) || spent >= limit) return status;
    if (!told) {
      console_.Note(
          absl::StrCat("waiting for room for the summary: ", status.message()));
    }
    absl::SleepFor(kRoom);
  }
}

void JobRun::AwaitRecord(int64_t step) {
  absl::MutexLock lock(&record_mu_);
  const auto recorded = [this, step]() ABSL_SHARED_LOCKS_REQUIRED(record_mu_) {
    return recorded_step_ >= step || !recording_;
  };
  AwaitFor(&record_mu_, absl::Condition(&recorded), kLastRecords);
}

void JobRun::SaveTargets(const std::string& targets) {
  if (targets == saved_targets_) return;
  const absl::Status status = directory_->SaveTargets(targets);
  if (absl::IsResourceExhausted(status)) return;  // the next look retries
  saved_targets_ = targets;
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
}

}  // namespace tributary
