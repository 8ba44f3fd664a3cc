// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cli/run/job/job_run_options.h"
#include "common/host/machine.h"
#include "coordinator/job/job_news.h"
#include "coordinator/page/run_history.h"
#include "coordinator/run/describe_model.h"
#include "coordinator/run/run_directory.h"
#include "coordinator/run/run_record.h"

namespace tributary {

double WallSeconds();  // since 1970

// Lets the coordinator's thread wait until the last steps are in metrics.jsonl.
// Thread-safe.
class RecordedStep {
 public:
  explicit RecordedStep(int64_t step) : step_(step) {}

  void Set(int64_t step);
  // Nothing is recorded after this.
  void End();
  // Waits, for a limited time, until the steps up to `step` are recorded.
  void Await(int64_t step);

 private:
  absl::Mutex mu_;
  int64_t step_ ABSL_GUARDED_BY(mu_);
  bool recording_ ABSL_GUARDED_BY(mu_) = true;
};

// Writes a run's directory while it trains, and remembers what the status page
// and the summary show. Calls return the errors of their writes:
// ResourceExhausted: the disk is full, and the lines wait for room.
class RunRecorder {
 public:
  // `options` must outlive this object.
  explicit RunRecorder(const JobRunOptions* options);

  // Opens the directory of an earlier coordinator. `started`: in seconds since
  // 1970, for new names.
  absl::Status Reopen(std::unique_ptr<RunLock> lock, double started);
  // After Reopen: takes over what the earlier coordinator has recorded.
  absl::Status Continue(const v1::CoordinatorState& earlier);
  // Takes the directory `given`, or creates one unless Reopen has opened one.
  // From then on the coordinator's state is saved.
  absl::Status Open(std::unique_ptr<RunDirectory> given, double started);

  bool has_directory() const { return directory_ != nullptr; }
  RunDirectory& directory() const { return *directory_; }
  const RunHistory& history() const { return history_; }
  const std::vector<EvaluationRecord>& evaluations() const {
    return evaluations_;
  }
  int64_t last_step() const { return last_step_; }
  // The checksum of the final weights; empty: not written yet. Call it when the
  // coordinator's thread has ended.
  const std::string& weights_sha256() const { return weights_sha256_; }

  // For the coordinator's thread. Without effect before Open.
  absl::Status SaveState(const v1::CoordinatorState& state);
  absl::Status SaveEvaluations(
      const std::vector<EvaluationRecord>& evaluations);
  // Writes the final weights, and waits until all steps are recorded: after the
  // job is done no worker reports its steps again.
  absl::Status SaveWeights(const FinalWeights& weights);

  // nullopt: there was nothing to write.
  std::optional<absl::Status> Record(const JobUpdate& update);
  // After this only the summary is recorded.
  void EndRecording() { recorded_.End(); }
  // environment.json is due when the training begins, and again after the
  // first step: then all ranks have reported their arithmetic.
  bool EnvironmentIsDue() const;
  // workers: as EnvironmentRecord; none: the training has not begun, and
  // nothing is written.
  absl::Status RecordEnvironment(
      const std::vector<v1::RegisterRequest>& workers);
  // Writes what waits for room, and files whose content has changed. Call it
  // about once a second. targets: as RunPages::Targets.
  absl::Status LookAfter(const std::vector<v1::RegisterRequest>& workers,
                         const std::string& targets);
  // Rewrites prometheus-targets.json if they have changed.
  void SaveTargets(const std::string& targets);
  // Writes model.json and summary.json. `whatever`: also if other lines still
  // wait for room.
  absl::Status SaveSummary(const RunSummary& summary, bool whatever);

 private:
  // Sets evaluations_ to the evaluations of the earlier coordinator.
  absl::Status FindEvaluations(const v1::CoordinatorState& earlier);
  // Writes model.json if it is known and not written yet.
  absl::Status SaveModel();
  // Writes coordinator.totals every few seconds; an error is only logged.
  void SaveTotals();

  const JobRunOptions& options_;
  std::unique_ptr<RunDirectory> directory_;
  std::atomic<RunDirectory*> saving_{nullptr};  // null: none yet
  std::string weights_sha256_;  // set by the coordinator's thread
  RunHistory history_;          // for the status page
  std::vector<EvaluationRecord> evaluations_;
  std::optional<v1::ModelRecord> model_;  // of model.json, once known
  bool model_saved_ = false;
  const Machine machine_ = ThisMachine();
  std::string environment_;  // as it was written last
  bool environment_settled_ = false;
  int64_t last_step_;
  RecordedStep recorded_;
  std::string targets_;        // as they were written last
  int64_t totals_micros_ = 0;  // when coordinator.totals was written last
};

}  // namespace tributary
