// SPDX-License-Identifier: Apache-2.0
// How JobRun writes its files, and how it waits while the disk is full.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/jobs/run_outcome.h"
#include "cli/run/job/job_run.h"
#include "cli/terminal/format.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/files/file_status.h"
#include "common/host/steady_waits.h"
#include "common/job/job_options.h"
#include "common/model_record/run_weights.h"
#include "common/status/cause.h"
#include "common/status/shell_text.h"
#include "common/status/status_macros.h"
#include "coordinator/run/environment_record.h"
#include "coordinator/run/export_tensors.h"
#include "coordinator/service/job_metrics.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace fs = std::filesystem;
namespace {

// How long the last steps may take to be written before the job is done.
constexpr absl::Duration kLastRecords = absl::Seconds(10);
// Pause between two attempts to write to a full disk.
constexpr absl::Duration kRoom = absl::Milliseconds(200);
// How often coordinator.totals is written.
constexpr int64_t kTotalsMicros = 5'000'000;

}  // namespace

std::string JobRun::CheckpointDirectory() const {
  return checkpoints_.Directory(directory_ ? directory_->path() : "");
}

std::string JobRun::ResumeCommand(const RunSummary& summary,
                                  bool anywhere) const {
  // The same command would be refused again.
  if (summary.status == "done" || summary.totals.refused) return "";
  std::string from = options_.start.restore_from;
  std::vector<std::string> words = options_.commands.restart.empty()
                                       ? options_.commands.resume
                                       : options_.commands.restart;
  const bool in_run = options_.job.checkpoint().directory().empty();
  // A resumed run begins with a copy of the checkpoint, beside which the run's
  // own job.yaml counts.
  const bool has_copy =
      in_run && options_.start.step > 0 &&
      ReadCheckpointInfo(
          absl::StrCat(CheckpointDirectory(), "/",
                       CheckpointFolderName(options_.start.step)))
          .complete();
  if (summary.totals.checkpoint_step > 0 || has_copy) {
    words = options_.commands.resume;
    from = in_run ? directory_->path() : options_.job.checkpoint().directory();
  }
  std::error_code error;  // the run directory may have been moved
  if (from.empty() || !fs::exists(from, error)) return "";
  if (anywhere) from = AbsolutePath(from);
  std::replace(words.begin(), words.end(),
               std::string(JobRunOptions::Commands::kCheckpoint), from);
  return ShellText(words);
}

void JobRun::Record(const JobUpdate& update) {
  if (update.model && !options_.job.has_program()) {
    model_ = DescribeModel(options_.job, *update.model);
    HeedDisk(SaveModel());
  }
  if (update.model && options_.check_model) {
    const absl::Status fits = options_.check_model(*update.model);
    if (!fits.ok()) coordinator_->control().Fail(fits.message());
  }
  for (const StepRecord& record : update.steps) {
    last_step_ = record.step;
    history_.AddStep(record);
  }
  for (const EvaluationRecord& e : update.evaluations)
    history_.AddEvaluation(e);
  evaluations_.insert(evaluations_.end(), update.evaluations.begin(),
                      update.evaluations.end());
  if (!update.events.empty()) HeedDisk(directory_->AddEvents(update.events));
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
  if (full) {
    v1::Wait room = WaitFor(note);
    room.set_cause(v1::CAUSE_FULL_DISK);
    room.set_steps_go_on(true);
    return coordinator_->control().SetWaits(room);  // it shows the note
  }
  coordinator_->control().SetWaits({});
  spdlog::warn("{}", note);
  console().Note(note);
}

absl::Status JobRun::SaveModel() {
  if (!model_ || model_saved_) return absl::OkStatus();
  const absl::Status saved = directory_->SaveModel(*model_, std::nullopt);
  model_saved_ = saved.ok();
  return saved;
}

absl::Status JobRun::SaveEnvironment() {
  if (update_.phase == v1::JOB_PHASE_WAITING) return absl::OkStatus();
  EnvironmentRecord record{.machine = machine_,
                           .workers = coordinator_->control().Workers(),
                           .data = options_.data_record,
                           .start = options_.start};
  if (model_) {
    record.training_rows = model_->training_data().rows();
    record.training_checksum = model_->training_data().checksum();
  }
  const std::string json = EnvironmentJson(record);
  if (json == saved_environment_) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(directory_->SaveEnvironment(json));
  saved_environment_ = json;
  return absl::OkStatus();
}

void JobRun::RecordEnvironment() {
  const bool settled = last_step_ > options_.start.step;
  if (!saved_environment_.empty() && settled == environment_settled_) return;
  HeedDisk(SaveEnvironment());
  environment_settled_ = settled;
}

void JobRun::LookAfterDirectory() {
  absl::Status written = directory_->Flush();
  written.Update(SaveModel());
  written.Update(SaveEnvironment());
  HeedDisk(written);
  SaveTotals();
  SaveTargets(pages_->Targets());
}

// Without these totals a successor reads all of metrics.jsonl.
void JobRun::SaveTotals() {
  const int64_t now = options_.clock->NowMicros();
  if (now - totals_micros_ < kTotalsMicros) return;
  totals_micros_ = now;
  const absl::Status saved = directory_->SaveTotals(history_.SaveSteps());
  if (!saved.ok()) spdlog::warn("{}", std::string(saved.message()));
}

absl::Status JobRun::SaveSummary(const RunSummary& summary) {
  const int64_t start = options_.clock->NowMicros();
  const absl::Duration limit =
      absl::Seconds(StrategyOf(options_.job).timeout_seconds);
  for (bool told = false;; told = true) {
    const bool last =
        absl::Microseconds(options_.clock->NowMicros() - start) >= limit;
    absl::Status status = directory_->Flush();
    // A record whose file was removed, or that has no room, must not keep the
    // run from saying how it ended. If the directory is another run's or a new
    // one, nothing is written.
    if ((last || !absl::IsResourceExhausted(status)) &&
        directory_->lock().Check().ok()) {
      if (model_) {
        status.Update(directory_->SaveModel(*model_, MetricsOf(summary)));
      }
      status.Update(directory_->SaveSummary(summary));
    }
    if (last || !absl::IsResourceExhausted(status)) return status;
    if (!told) {
      console().Note(
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

void JobRun::Register() {
  RegisteredJob job;
  job.name = options_.job.name();
  job.job_id = coordinator_->control().Snapshot().job_id();
  job.coordinator = coordinator_->address();
  job.encrypted = options_.listening.access.encrypted();
  const std::vector<std::string>& resume = options_.commands.resume;
  job.command = options_.folder.take_over                 ? kCoordinatorCommand
                : resume.size() > 1 && resume[1] == "run" ? kRunCommand
                                                          : kTrainCommand;
  std::error_code error;
  job.run_directory = fs::canonical(directory_->path(), error).string();
  job.started_micros = static_cast<int64_t>(1e6 * start_wall_seconds_);
  const JobRegister jobs(options_.folder.registered_in);
  RunKeys::RemoveThoseOfGone(jobs);
  absl::StatusOr<std::unique_ptr<JobRegister::Entry>> entry =
      jobs.Add(std::move(job));
  if (entry.ok()) {
    registered_ = *std::move(entry);
  } else {
    spdlog::info("`tributary list` will not know this job: {}",
                 std::string(entry.status().message()));
  }
}

void JobRun::SaveTargets(const std::string& targets) {
  if (targets == saved_targets_) return;
  const absl::Status status = directory_->SaveTargets(targets);
  if (absl::IsResourceExhausted(status)) return;  // the next look retries
  saved_targets_ = targets;
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
}

}  // namespace tributary
