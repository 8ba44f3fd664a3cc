// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/member/coordinator_client.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Sends a worker's results to the coordinator: weights and evaluations.
// Thread-safe.
class ResultSender {
 public:
  // Evaluations that are kept for another coordinator; the oldest is dropped
  // first. A coordinator drops its oldest ones, too (Evaluations::kMaxOpen).
  static constexpr size_t kMaxKept = 16;

  // The client must outlive it. place: the worker's.
  ResultSender(CoordinatorClient* client, const v1::RegisterResponse& place)
      : client_(client),
        rank_(place.index()),
        incarnation_(place.incarnation()),
        term_(place.term()) {}

  // In a job without servers: sends the weights of one of the plan's parameters
  // after the last step.
  absl::Status PutWeights(uint64_t plan_epoch, int64_t step, int parameter,
                          const std::vector<float>& tensor);

  // The sets of a job: the one on which it evaluates while it trains, and the
  // test set, if that is another one.
  enum class Set { kEvaluated, kTest };

  // Reports this worker's part of the evaluation of the weights after `step`
  // steps. While another coordinator takes over it waits for Follow.
  absl::Status ReportEvaluation(int64_t step, int64_t epoch,
                                const v1::EvaluationPart& part,
                                Set set = Set::kEvaluated);

  // The heartbeat thread calls this when a coordinator of this term has
  // answered. A new coordinator first gets, in the order of steps, the parts
  // that only its predecessor had: once a later evaluation is complete, the
  // coordinator waits no longer for an earlier one. OK: the coordinator has the
  // parts, or refuses them for good; another error: call again.
  absl::Status Follow(uint64_t term);
  // Ends every wait. Call it when Follow is not called any more.
  void Close();

 private:
  using Key = std::pair<int64_t, bool>;  // step; on the test set

  // Sends a part, which counts only if no other coordinator has taken over
  // meanwhile. Aborted: another coordinator has taken over, or is taking over.
  absl::Status Send(const v1::ReportEvaluationRequest& request);
  // Keeps a part that the coordinator has taken, and drops the parts of
  // evaluations that the coordinator has saved.
  void Keep(const v1::ReportEvaluationRequest& request,
            const v1::ReportEvaluationResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  CoordinatorClient* const client_;
  const uint32_t rank_;
  const uint64_t incarnation_;

  absl::Mutex mu_;
  uint64_t term_ ABSL_GUARDED_BY(mu_);  // sent with later parts
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  // Parts that a coordinator has taken but has not yet reported as saved.
  std::map<Key, v1::ReportEvaluationRequest> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
