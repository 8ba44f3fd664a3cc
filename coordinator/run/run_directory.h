// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model_record/model_record.h"
#include "coordinator/job/final_weights.h"
#include "coordinator/run/evaluation_file.h"
#include "coordinator/run/event_file.h"
#include "coordinator/run/metrics_file.h"
#include "coordinator/run/record_file.h"
#include "coordinator/run/run_lock.h"
#include "coordinator/run/run_record.h"
#include "coordinator/run/trace_file.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The directory that a run leaves behind, locked while this object lives:
//   job.yaml             the resolved job
//   metrics.jsonl        a line for each finished step
//   timeline.jsonl       a line for each step that the status page draws
//   trace.jsonl          the events of traced steps, if there are any
//   events.jsonl         losses, replacements, rollbacks, checkpoints, phases
//   evaluations.jsonl    a line for each complete evaluation, if any
//   events.out.tfevents  losses and metrics for TensorBoard
//   logs/                one file for each process
//   model.json           how to use the weights
//   environment.json     what the run is computed with
//   weights.safetensors  the final weights
//   summary.json         the run's outcome, written at its end
//   coordinator.state    what a restarted coordinator needs to continue
//   coordinator.totals   sums over metrics.jsonl, for the same purpose
//   coordinator.lock     names the writing process; removed at the end
//   prometheus-targets.json  addresses of the metrics, if any
class RunDirectory {
 public:
  // Creates the directory of a new run. `path` empty:
  // runs/NAME-YYYYMMDD-HHMMSS, with -2, -3 ... appended when that is taken. A
  // given path must be absent or empty: otherwise AlreadyExists, or an error of
  // RunLock::Take. `started` is in seconds since 1970 and appears in the name
  // as local time.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Create(
      const std::string& path, const v1::JobSpec& job, std::time_t started);

  // Replaces job.yaml, for a job of which Create knew only a part.
  absl::Status SaveJob(const v1::JobSpec& job);

  // Creates only the directory, for a command that makes several runs.
  static absl::StatusOr<std::string> MakeFolder(const std::string& path,
                                                const std::string& name,
                                                std::time_t started);

  // Opens an earlier run's directory to continue it: new lines are appended to
  // its files. Shows the steps so far to `earlier`. Lines of logs that cannot
  // be read are left out; damage() names them.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(
      std::unique_ptr<RunLock> lock, std::time_t started,
      const EarlierSteps& earlier = {});

  RunLock& lock() { return *lock_; }

  // The totals of metrics.jsonl; step 0: the file is empty.
  RecordedSteps recorded() const { return metrics_->Recorded(); }
  // The evaluations that evaluations.jsonl held when it was opened.
  const std::vector<EvaluationRecord>& earlier_evaluations() const {
    return earlier_evaluations_;
  }
  // Sentences about lines that could not be read when the files were opened.
  const std::vector<std::string>& damage() const { return damage_; }
  // The newest events that events.jsonl held when it was opened, oldest first,
  // at most EventHistory::kMaxEvents.
  const std::vector<HistoryEvent>& earlier_events() const {
    return earlier_events_;
  }

  // Saves coordinator.state: what a restarted coordinator needs to continue.
  absl::Status SaveState(const v1::CoordinatorState& state) const;
  // NotFound: there is no such file. InvalidArgument: it cannot be read. Other
  // errors as DecodeState (state_file.h).
  static absl::StatusOr<v1::CoordinatorState> ReadState(
      const std::string& path);
  // As EvaluationFile::Save. May be called from another thread than the other
  // functions, one call at a time.
  absl::Status SaveEvaluations(
      const std::vector<EvaluationRecord>& evaluations) {
    return evaluations_.Save(evaluations);
  }
  // As MetricsFile::SaveTotals.
  absl::Status SaveTotals(const v1::StepsShown& shown) {
    return metrics_->SaveTotals(shown);
  }

  const std::string& path() const { return path_; }
  std::string LogPath(const std::string& process) const {
    return path_ + "/logs/" + process + ".log";
  }

  // Add records to all files that show them. wall_seconds: since 1970. Errors
  // as Flush.
  absl::Status AddSteps(const std::vector<StepRecord>& records,
                        double wall_seconds);
  absl::Status AddEvaluations(const std::vector<EvaluationRecord>& evaluations,
                              double wall_seconds);
  absl::Status AddTrace(const std::vector<TraceBatch>& batches);
  absl::Status AddEvents(const std::vector<HistoryEvent>& events);

  // Writes the records that were kept while the disk was full.
  // ResourceExhausted: it is still full, and the records are still kept.
  // NotFound: a file or the directory was removed.
  absl::Status Flush();
  // Waits until the written lines of metrics.jsonl are on the disk. May be
  // called from any thread. Errors as Flush.
  absl::Status SyncSteps() { return metrics_->Sync(); }
  // Number of records that were dropped because too many were kept.
  int64_t given_up() const;

  // The sha256 of the weights file in this directory.
  absl::StatusOr<std::string> ReadWeightsSha256(
      const ParameterSpecs& parameters) const;
  // Returns the weights' sha256 (common/files/sha256.h).
  absl::StatusOr<std::string> SaveWeights(const FinalWeights& weights);
  // Writes model.json, and again, with metrics, when the run ends.
  absl::Status SaveModel(const v1::ModelRecord& model,
                         const std::optional<ModelMetrics>& metrics) const;
  absl::Status SaveSummary(const RunSummary& summary);
  // Writes environment.json (environment_record.h).
  absl::Status SaveEnvironment(const std::string& json) const;
  static bool HasSummary(const std::string& path);
  static constexpr char kTraceFile[] = "/trace.jsonl";
  absl::Status SaveTargets(const std::string& json);

 private:
  explicit RunDirectory(std::unique_ptr<RunLock> lock)
      : path_(lock->directory()),
        lock_(std::move(lock)),
        evaluations_(path_),
        trace_(path_ + kTraceFile) {}

  const std::string path_;
  const std::unique_ptr<RunLock> lock_;
  std::optional<MetricsFile> metrics_;
  EvaluationFile evaluations_;
  std::optional<RecordFile> timeline_;
  std::optional<RecordFile> history_;  // events.jsonl
  TraceFile trace_;
  std::vector<EvaluationRecord> earlier_evaluations_;
  std::vector<HistoryEvent> earlier_events_;
  std::vector<std::string> damage_;
  std::unique_ptr<EventFile> events_;
};

}  // namespace tributary
