#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/run/event_file.h"
#include "coordinator/run/record_file.h"
#include "coordinator/run/run_lock.h"
#include "coordinator/run/run_record.h"
#include "coordinator/service/final_weights.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The folder that a run leaves behind, locked as long as this object lives:
//   job.yaml             the resolved job
//   metrics.jsonl        a line for each step, as steps finish
//   timeline.jsonl       a line for each step that is drawn
//   events.out.tfevents  the same for TensorBoard, with the evaluations
//   logs/                one file for each process
//   weights.safetensors  the final weights
//   summary.json         how it went, at the end
//   coordinator.state    what another coordinator needs to go on with the job
//   coordinator.lock     who writes here; removed at the end
//   prometheus-targets.json  where the metrics are, when there are some
class RunDirectory {
 public:
  // `path` empty: runs/NAME-YYYYMMDD-HHMMSS, with -2, -3 ... behind it when
  // that is taken. A given path must not exist or be empty: AlreadyExists, or
  // as RunLock::Take.
  // `started` is seconds since 1970, written as local time in the name.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Create(
      const std::string& path, const v1::JobSpec& job, std::time_t started);

  // The folder alone, for what holds several runs.
  static absl::StatusOr<std::string> MakeFolder(const std::string& path,
                                                const std::string& name,
                                                std::time_t started);

  // An earlier run's, to go on with: new lines follow what stands there.
  // NotFound and the like when it is no run directory.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(
      std::unique_ptr<RunLock> lock, std::time_t started);

  RunLock& lock() { return *lock_; }

  // The totals of metrics.jsonl when it was opened; step 0: it was empty.
  const RecordedSteps& recorded() const { return recorded_; }

  // coordinator.state: what a coordinator needs to go on after its own end.
  absl::Status SaveState(const v1::CoordinatorState& state) const;
  // NotFound: there is none. Else as DecodeState (state_file.h).
  static absl::StatusOr<v1::CoordinatorState> ReadState(
      const std::string& path);

  const std::string& path() const { return path_; }
  std::string LogPath(const std::string& process) const {
    return path_ + "/logs/" + process + ".log";
  }

  // Both appear in the files at once. wall_seconds since 1970. Errors as Flush.
  absl::Status AddSteps(const std::vector<StepRecord>& records,
                        double wall_seconds);
  absl::Status AddEvaluations(const std::vector<EvaluationRecord>& evaluations,
                              double wall_seconds);

  // Writes what a full disk has kept from the files. ResourceExhausted: it
  // still is full, and what was added is kept. NotFound: somebody has removed a
  // file or the directory.
  absl::Status Flush();
  // Records that were given up, as too many were kept.
  int64_t given_up() const;

  // The sha256 of the weights that stand there.
  absl::StatusOr<std::string> ReadWeightsSha256(
      const ParameterSpecs& parameters) const;
  // Returns the weights' sha256 (common/files/sha256.h).
  absl::StatusOr<std::string> SaveWeights(const FinalWeights& weights);
  absl::Status SaveSummary(const RunSummary& summary);
  static bool HasSummary(const std::string& path);
  absl::Status SaveTargets(const std::string& json);

 private:
  explicit RunDirectory(std::unique_ptr<RunLock> lock)
      : path_(lock->directory()), lock_(std::move(lock)) {}

  const std::string path_;
  const std::unique_ptr<RunLock> lock_;
  std::optional<RecordFile> metrics_;
  std::optional<RecordFile> timeline_;
  RecordedSteps recorded_;
  std::unique_ptr<EventFile> events_;
};

}  // namespace tributary
