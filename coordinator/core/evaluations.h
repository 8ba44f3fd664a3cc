#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Metrics of the weights after `step` steps over the whole test set.
struct EvaluationRecord {
  int64_t step = 0;
  int64_t epoch = 0;
  uint64_t samples = 0;
  std::map<std::string, double> metrics;  // by name
};

// Collects the ranks' parts of each evaluation; adds them up, in rank order,
// once all are there.
class Evaluations {
 public:
  // Evaluations that may wait for their last part. One more gives the oldest of
  // them up: a rank that far behind must not stop the others.
  static constexpr size_t kMaxOpen = 16;

  Evaluations(const v1::LossSpec& loss, int num_workers)
      : loss_(loss), num_workers_(num_workers) {}

  // A part that is there already, or whose evaluation is complete or given up,
  // is ignored. InvalidArgument: the part contradicts itself.
  absl::Status Add(const v1::ReportEvaluationRequest& request);

  // Goes on after those that an earlier coordinator has completed.
  void Restore(std::vector<EvaluationRecord> complete);
  // All that are complete, in step order.
  const std::vector<EvaluationRecord>& all() const { return all_; }
  // The newest that is complete; step -1: none.
  const EvaluationRecord& latest() const { return latest_; }

  // Those completed since the last call whose step is at most `step`.
  std::vector<EvaluationRecord> Take(int64_t step);
  bool HasRecords(int64_t step) const {
    return !records_.empty() && records_.front().step <= step;
  }
  // Sentences about evaluations that were given up, since the last call.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  using Parts = std::vector<std::optional<v1::ReportEvaluationRequest>>;

  absl::StatusOr<EvaluationRecord> AddUp(const Parts& parts) const;
  void GiveUpOldest();

  const v1::LossSpec loss_;
  const int num_workers_;
  std::map<int64_t, Parts> open_;  // by step; parts by rank
  int64_t given_up_step_ = -1;     // the highest that was given up
  EvaluationRecord latest_{.step = -1};
  std::vector<std::string> notices_;
  std::vector<EvaluationRecord> records_;  // in step order
  std::vector<EvaluationRecord> all_;
};

}  // namespace tributary
