#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// One optimizer step of the whole job, merged from the reports of all ranks.
struct StepRecord {
  int64_t step = 0;          // from 1
  int64_t epoch = 0;         // from 1; rank 0's
  double loss = 0;           // mean over the global batch, before the update
  double learning_rate = 0;  // rank 0's
  uint64_t samples = 0;      // of all ranks
  double samples_per_second = 0;  // over the last kWindowSeconds of training
  // Means over the ranks, so that the parts add up to the step.
  double step_seconds = 0;
  double compute_seconds = 0;
  double push_seconds = 0;
  double exchange_seconds = 0;
  double idle_seconds = 0;
  double wait_seconds = 0;
  double data_seconds = 0;
  // Of wait_seconds: what it exceeds that of the rank that waited least, which
  // is how long the others waited for the slowest; and the optimizer's, where
  // the workers run it.
  double peer_seconds = 0;
  double optimizer_seconds = 0;
  uint64_t bytes_sent = 0;  // payloads, by all ranks
  uint64_t bytes_received = 0;
  // Of a step that is drawn (common/base/timeline_step.h): every rank's report;
  // a lost one has epoch 0.
  std::vector<v1::StepReport> ranks;
};

// Totals over the steps that were recorded so far.
struct RecordedSteps {
  int64_t step = 0;  // the last
  int64_t epoch = 0;
  double loss = 0;  // of the last
  uint64_t samples = 0;
  double training_seconds = 0;
};

// Collects every rank's StepReports and merges a step once all have reported
// it. Ranks run apart, reports come twice and steps are repeated after a loss;
// records come once, in step order. What a lost worker did not report any more
// is left out of its steps' records.
class Progress {
 public:
  static constexpr double kWindowSeconds = 5;
  // How far a rank may be ahead of the slowest, and records may wait for
  // Take(), before its reports are left for later.
  static constexpr size_t kMaxWaiting = 65536;
  // Steps that a member names lie below: they can be added to.
  static constexpr int64_t kMaxStep = int64_t{1} << 53;

  // Steps up to `start_step` were reported to an earlier run.
  explicit Progress(int num_workers, int64_t start_step = 0);

  // These were recorded by an earlier coordinator of the job.
  void Continue(const RecordedSteps& recorded);

  // The process that reports for the rank has begun after `start_step`: the
  // reports up to there that have not come will not. InvalidArgument when that
  // is far beyond the others, or no step.
  absl::Status StartAt(uint32_t rank, int64_t start_step);

  // Returns how many of `reports`, from the front, are settled: taken now or
  // seen before. InvalidArgument, with nothing taken, when they leave a gap or
  // hold an impossible number.
  absl::StatusOr<uint32_t> Add(
      uint32_t rank,
      const google::protobuf::RepeatedPtrField<v1::StepReport>& reports);

  // The records merged since the last call.
  std::vector<StepRecord> Take();
  bool HasRecords() const { return !records_.empty(); }

  int64_t last_step(uint32_t rank) const { return ranks_[rank].last_step; }
  int64_t merged_step() const { return latest_.step; }
  const StepRecord& latest() const { return latest_; }  // step 0: none yet
  uint64_t total_samples() const { return total_samples_; }
  // Sum of the steps' step_seconds: the time of training alone.
  double training_seconds() const { return training_seconds_; }

 private:
  struct Rank {
    int64_t last_step = 0;
    std::deque<v1::StepReport> waiting;  // not yet merged; epoch 0: lost
  };
  struct Recent {
    uint64_t samples;
    double seconds;
  };

  void MergeComplete();
  StepRecord MergeFront();
  double Rate(const StepRecord& record);

  std::vector<Rank> ranks_;
  std::deque<Recent> recent_;
  uint64_t recent_samples_ = 0;
  StepRecord latest_;
  std::vector<StepRecord> records_;
  uint64_t total_samples_ = 0;
  double training_seconds_ = 0;
};

}  // namespace tributary
