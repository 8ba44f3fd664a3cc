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

// Pause between two attempts to write to a full disk.
constexpr absl::Duration kRoom = absl::Milliseconds(200);
}  // namespace

std::string JobRun::CheckpointDirectory() const {
  return checkpoints_.Directory(recorder_.has_directory() ? directory().path()
                                                          : "");
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
    from = in_run ? directory().path() : options_.job.checkpoint().directory();
  }
  std::error_code error;  // the run directory may have been moved
  if (from.empty() || !fs::exists(from, error)) return "";
  if (anywhere) from = AbsolutePath(from);
  std::replace(words.begin(), words.end(),
               std::string(JobRunOptions::Commands::kCheckpoint), from);
  return ShellText(words);
}

void JobRun::Record(const JobUpdate& update) {
  if (update.model && options_.check_model) {
    const absl::Status fits = options_.check_model(*update.model);
    if (!fits.ok()) coordinator_->control().Fail(fits.message());
  }
  if (const auto written = recorder_.Record(update)) HeedDisk(*written);
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
  if (const int64_t lost = directory().given_up(); lost > given_up_ && !full) {
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

std::vector<v1::RegisterRequest> JobRun::Workers() const {
  if (update_.phase == v1::JOB_PHASE_WAITING) return {};
  return coordinator_->control().Workers();
}

void JobRun::LookAfterDirectory() {
  HeedDisk(recorder_.LookAfter(Workers(), pages_->Targets()));
}

absl::Status JobRun::SaveSummary(const RunSummary& summary) {
  const int64_t start = options_.clock->NowMicros();
  const absl::Duration limit =
      absl::Seconds(StrategyOf(options_.job).timeout_seconds);
  for (bool told = false;; told = true) {
    const bool last =
        absl::Microseconds(options_.clock->NowMicros() - start) >= limit;
    const absl::Status status = recorder_.SaveSummary(summary, last);
    if (last || !absl::IsResourceExhausted(status)) return status;
    if (!told) {
      console().Note(
          absl::StrCat("waiting for room for the summary: ", status.message()));
    }
    absl::SleepFor(kRoom);
  }
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
  job.run_directory = fs::canonical(directory().path(), error).string();
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

}  // namespace tributary
