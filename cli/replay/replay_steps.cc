// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/replay_steps.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/replay/read_probes.h"
#include "cli/run/local_run.h"
#include "cli/run/resume.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/files/file_checksum.h"
#include "common/job/job_options.h"
#include "common/job/resolve.h"
#include "common/job/validate/validate.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

constexpr int kKeepAll = 1000;  // the job stops before it has this many

// A directory that is removed with this object.
class TemporaryFolder {
 public:
  static absl::StatusOr<std::shared_ptr<TemporaryFolder>> Create() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string path = (parent / "tributary-replay-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot create a directory in ", parent.string()));
    }
    return std::shared_ptr<TemporaryFolder>(new TemporaryFolder(path));
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// Whether data_parallel computes the same bits as this strategy: on the CPU the
// ranks add their gradients in rank order in both cases, at the newest weights
// if there is no delay.
bool FitsOneProcess(const RecordedRun& run) {
  const v1::StrategySpec& strategy = run.job.strategy();
  const Strategy what = StrategyOf(run.job);
  return run.OnCpu() && SyncTraitsOf(run.job).delay == 0 &&
         what.mesh().model_size() == 1 &&
         strategy.parameter_server().wire() == v1::WIRE_FORMAT_FLOAT32 &&
         strategy.parameter_server().weights_wire() == v1::WIRE_FORMAT_FLOAT32;
}

void PutInOneProcess(v1::JobSpec* job) {
  const double timeout = StrategyOf(*job).timeout_seconds;
  job->clear_strategy();
  v1::DataParallelSpec* spec = job->mutable_strategy()->mutable_data_parallel();
  spec->set_bucket_bytes(Strategy::kAllReduceBucketBytes);
  spec->set_first_bucket_bytes(Strategy::kFirstBucketBytes);
  spec->set_timeout_seconds(timeout);
  job->mutable_cluster()->set_servers(0);
}

}  // namespace

absl::Status CheckReplayable(const RecordedRun& run) {
  if (run.job.has_program()) {
    return absl::InvalidArgumentError(absl::StrCat(
        run.folder,
        ": its steps were computed by a program of the user (tributary run), "
        "so they cannot be computed again"));
  }
  const SyncTraits sync = SyncTraitsOf(run.job);
  if (sync.bulk_synchronous()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      run.folder, ": its steps cannot be computed again, because with sync: ",
      sync.name, sync.mode == ApplyMode::kBackup ? ": {backup_workers}" : "",
      sync.updates_locally
          ? " each worker keeps a state that no checkpoint holds"
          : " they depend on timing",
      " (docs/consistency.md)"));
}

absl::Status CheckStartIsLeft(const RecordedRun& run, int64_t first_step) {
  if (run.start_step == 0 || run.CheckpointUpTo(first_step - 1) != nullptr) {
    return absl::OkStatus();
  }
  const bool has_start = run.CheckpointUpTo(run.start_step) != nullptr;
  std::string text = absl::StrCat(
      run.folder, " was resumed after step ", run.start_step,
      ", and no checkpoint before step ",
      has_start ? first_step : std::max(first_step, run.start_step + 1),
      " is left");
  const auto later = std::find_if(
      run.states.begin(), run.states.end(),
      [](const RecordedState& state) { return state.is_checkpoint; });
  if (later != run.states.end() && run.losses.contains(later->step + 1)) {
    absl::StrAppend(&text, "; its steps from ", later->step + 1,
                    " on can be computed again");
  }
  return absl::InvalidArgumentError(text);
}

v1::JobSpec JobToReplay(const RecordedRun& run, int64_t last_step) {
  v1::JobSpec job = run.job;
  job.mutable_data()->clear_test();
  // A validation set that is a fraction of the training rows stays, because it
  // keeps these rows away from training.
  if (job.data().validation().has_source()) {
    job.mutable_data()->clear_validation();
  }
  job.clear_evaluation();
  job.clear_trace();
  v1::CheckpointSpec* checkpoint = job.mutable_checkpoint();
  checkpoint->clear_directory();
  checkpoint->set_every_steps(last_step);
  checkpoint->set_keep(kKeepAll);
  checkpoint->set_at_end(false);
  if (run.OnCpu()) job.set_device(v1::DEVICE_CPU);
  if (FitsOneProcess(run)) PutInOneProcess(&job);
  return job;
}

namespace {

// Looks at the files that a replay reads.
absl::Status CheckFiles(const RecordedRun& run, v1::JobSpec job) {
  const std::string file = run.folder + "/job.yaml";
  Places places;
  places.Record("", file);
  TRIBUTARY_RETURN_IF_ERROR(ResolvePaths(file, places, &job));
  return ValidateInitialWeights(places, job);
}

}  // namespace

absl::StatusOr<ReplayedSteps> ReplaySteps(const RecordedRun& run,
                                          int64_t first_step,
                                          int64_t last_step) {
  ReplayedSteps replayed;
  TRIBUTARY_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Create());
  replayed.files = folder;
  LocalRunOptions options;
  options.job = JobToReplay(run, last_step);
  options.run_dir = folder->path() + "/run";
  options.probe = {.first_step = first_step,
                   .last_step = last_step,
                   .folder = folder->path() + "/probe"};
  std::error_code error;
  fs::create_directory(options.probe.folder, error);
  if (const RecordedState* state = run.CheckpointUpTo(first_step - 1)) {
    replayed.from = *state;
    TRIBUTARY_ASSIGN_OR_RETURN(const ResumePoint point,
                               FindResumePoint(state->path));
    options.start = point.start;
    LeaveOutInitialWeights(&options.job);
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckFiles(run, options.job));
  if (const std::string& file = options.job.model().initialize_from();
      !file.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::string checksum, FileChecksum(file));
    options.data_record =
        nlohmann::json{{"initial_weights", {{"checksum", checksum}}}}.dump();
  }
  const int code = RunLocally(options);
  if (Interrupts::Requested() != 0) return absl::CancelledError("interrupted");
  // The replay stops before the job's end, like a run that a person stops.
  if (code == kExitFailed || code == kExitRefused) {
    return absl::FailedPreconditionError(
        absl::StrCat("the steps of ", run.folder, " could not be computed"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const RecordedRun record,
                             ReadRecordedRun(options.run_dir));
  replayed.environment = record.environment;
  const int workers = run.job.cluster().workers();
  TRIBUTARY_ASSIGN_OR_RETURN(
      replayed.steps, ReadProbes(options.probe.folder, workers, record.losses,
                                 first_step, last_step));
  replayed.after = {.step = last_step,
                    .path = absl::StrCat(options.run_dir, "/checkpoints/",
                                         CheckpointFolderName(last_step)),
                    .is_checkpoint = true};
  return replayed;
}

}  // namespace tributary
