// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The set on which a job evaluates while it trains: "validation" if it has
// data.validation, else "test".
std::string EvaluatedSet(const v1::JobSpec& job);

// Metrics over a whole set, of the weights after `step` steps.
struct EvaluationRecord {
  int64_t step = 0;
  int64_t epoch = 0;
  uint64_t samples = 0;
  std::map<std::string, double> metrics;  // by name
  std::string set = "test";               // or "validation"
};

// Convert between records and their form in states and manifests.
using SavedEvaluations =
    google::protobuf::RepeatedPtrField<v1::EvaluationState>;
std::vector<EvaluationRecord> EvaluationsOf(const SavedEvaluations& saved,
                                            const std::string& set);
void SaveEvaluation(const EvaluationRecord& record, SavedEvaluations* saved);

// Collects each rank's part of an evaluation on one set and adds the parts up,
// in rank order, once all have arrived.
class Evaluations {
 public:
  // Limit of evaluations that wait for parts. Beyond it the oldest is given up,
  // so that one rank far behind does not stop the others.
  static constexpr size_t kMaxOpen = 16;

  Evaluations(const v1::LossSpec& loss, int num_workers,
              std::string set = "test")
      : loss_(loss), num_workers_(num_workers), set_(std::move(set)) {}

  // Ignored: a part that has arrived before, and a part of an evaluation that
  // is complete or given up. InvalidArgument: the part contradicts itself.
  absl::Status Add(const v1::ReportEvaluationRequest& request);

  // Continues after an evaluation that an earlier coordinator completed.
  void Restore(const EvaluationRecord& complete);
  // The run continues after this evaluation of another run, which is shown
  // until the run has an evaluation of its own. The run may evaluate after the
  // same step again, perhaps with other samples.
  void GoOnAfter(const EvaluationRecord& former) { former_ = former; }
  // Takes the evaluations completed since the last call, in step order.
  std::vector<EvaluationRecord> TakeComplete() {
    return std::exchange(complete_, {});
  }
  // The newest complete evaluation; step -1: none.
  const EvaluationRecord& latest() const { return latest_; }
  // The newest evaluation to show: latest(), or until there is one, that of the
  // former run.
  const EvaluationRecord& shown() const {
    return latest_.step < 0 ? former_ : latest_;
  }

  // Takes the evaluations to show, completed since the last call, whose step is
  // at most `step`.
  std::vector<EvaluationRecord> Take(int64_t step);
  bool HasRecords(int64_t step) const {
    return !records_.empty() && records_.front().step <= step;
  }
  // Takes the messages about given-up evaluations since the last call: about
  // the first one, the tenth, the hundredth and so on.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  using Parts = std::vector<std::optional<v1::ReportEvaluationRequest>>;

  absl::StatusOr<EvaluationRecord> AddUp(const Parts& parts) const;
  void GiveUpOldest();

  const v1::LossSpec loss_;
  const int num_workers_;
  const std::string set_;
  std::map<int64_t, Parts> open_;  // by step; parts by rank
  int64_t given_up_step_ = -1;     // the highest step given up
  int64_t given_up_ = 0;
  int64_t next_told_ = 1;
  EvaluationRecord latest_{.step = -1};
  EvaluationRecord former_{.step = -1};  // of another run
  std::vector<std::string> notices_;
  std::vector<EvaluationRecord> records_;  // to show, in step order
  std::vector<EvaluationRecord> complete_;
};

}  // namespace tributary
