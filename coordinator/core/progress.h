// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/member/step_seconds.h"
#include "coordinator/core/evaluation/skipped_steps.h"
#include "coordinator/core/members/equal_ranks.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// One optimizer step of the whole job, merged from the reports of all ranks.
struct StepRecord {
  int64_t step = 0;   // from 1
  int64_t epoch = 0;  // from 1; of the lowest rank that reported
  // Mean over the samples of the ranks that reported a loss, before the update;
  // nullopt if no rank did. NaN: training has diverged.
  std::optional<double> loss;
  double learning_rate = 0;       // of the lowest rank that reported
  uint64_t samples = 0;           // summed over all ranks
  double samples_per_second = 0;  // over the last kWindowSeconds of training
  // Means over the ranks, so that the parts still add up to the step.
  StepSeconds seconds;
  // Part of seconds.wait: the excess over the rank that waited least. This is
  // the mean time spent waiting for the slowest rank.
  double peer_seconds = 0;
  bool skipped = false;  // the update changed nothing (nonfinite: skip)
  // Number of ranks whose reports of the step are lost.
  size_t lost_reports = 0;
  uint64_t bytes_sent = 0;  // payloads, by all ranks
  uint64_t bytes_received = 0;
  // Every rank's report, if the step is drawn (common/base/timeline_step.h). A
  // lost report has epoch 0.
  std::vector<v1::StepReport> ranks;
};

// Totals over the steps recorded so far.
struct RecordedSteps {
  int64_t step = 0;  // of the last recorded step
  int64_t epoch = 0;
  std::optional<double> loss;  // the newest known one
  uint64_t samples = 0;
  double training_seconds = 0;
  int64_t skipped_steps = 0;  // as StepRecord.skipped
};

// Collects every rank's StepReports and merges a step once all ranks have
// reported it. Ranks progress at different speeds, reports arrive repeatedly
// and steps are repeated after a loss; each record comes out once, in step
// order. Reports that a lost worker could not send are left out of the records.
class Progress {
 public:
  static constexpr double kWindowSeconds = 5;

  // Steps up to `start_step` belong to an earlier run, in which
  // `skipped_steps` changed nothing.
  explicit Progress(int num_workers, int64_t start_step = 0,
                    int64_t skipped_steps = 0);

  // Continues after the steps that an earlier coordinator of the job recorded.
  void Continue(const RecordedSteps& recorded);

  // The process that reports for the rank starts after `start_step`, so missing
  // reports up to there count as lost. InvalidArgument when the step is
  // impossible, or so far beyond the last report that the gap exceeds
  // kMaxWaitingReports.
  absl::Status StartAt(uint32_t rank, int64_t start_step);

  // Returns how many of `reports`, from the front, are settled: taken now or
  // seen before. InvalidArgument, with nothing taken, when they leave a gap or
  // contain an impossible number.
  absl::StatusOr<uint32_t> Add(
      uint32_t rank,
      const google::protobuf::RepeatedPtrField<v1::StepReport>& reports);

  // No more reports come: every report that is missing counts as lost, up to
  // `step` or the furthest rank's last step.
  void Close(int64_t step);

  // Takes the records merged since the last call.
  std::vector<StepRecord> Take();
  bool HasRecords() const { return !records_.empty(); }

  // Sentences about ranks that seem to train on the same rows, and about steps
  // that changed nothing.
  std::vector<std::string> TakeNotices();

  int64_t last_step(uint32_t rank) const { return ranks_[rank].last_step; }
  // The newest report of a rank, without spans; step 0: none yet.
  const v1::StepReport& last_report(uint32_t rank) const {
    return ranks_[rank].last_report;
  }
  int64_t merged_step() const { return latest_.step; }
  // The last step that any rank has reported.
  int64_t furthest_step() const;
  // The latest merged step, with the newest known loss. Step 0: there is none
  // yet.
  const StepRecord& latest() const { return latest_; }
  uint64_t total_samples() const { return total_samples_; }
  // The steps that changed nothing, of the whole job as far as it is known.
  const SkippedSteps& skipped_steps() const { return skipped_steps_; }
  // Sum of the steps' step_seconds: training time without pauses between steps.
  double training_seconds() const { return training_seconds_; }

 private:
  struct Rank {
    int64_t last_step = 0;
    v1::StepReport last_report;
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
  EqualRanks equal_ranks_;
  SkippedSteps skipped_steps_;
  std::deque<Recent> recent_;
  uint64_t recent_samples_ = 0;
  StepRecord latest_;
  std::vector<StepRecord> records_;
  uint64_t total_samples_ = 0;
  double training_seconds_ = 0;
};

}  // namespace tributary
