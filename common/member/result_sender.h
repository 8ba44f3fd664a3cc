// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
  // The client must outlive it. place: the worker's.
  ResultSender(CoordinatorClient* client, const v1::RegisterResponse& place)
      : client_(client),
        rank_(place.index()),
        incarnation_(place.incarnation()) {}

  // In a job without servers: sends the weights of one of the plan's parameters
  // after the last step.
  absl::Status PutWeights(uint64_t plan_epoch, int64_t step, int parameter,
                          const std::vector<float>& tensor);

  // The sets of a job: the one on which it evaluates while it trains, and the
  // test set, if that is another one.
  enum class Set { kEvaluated, kTest };

  // Reports this worker's part of the evaluation of the weights after `step`
  // steps.
  absl::Status ReportEvaluation(int64_t step, int64_t epoch,
                                const v1::EvaluationPart& part,
                                Set set = Set::kEvaluated);
  // Sends the last evaluation on each set to a coordinator that has taken over.
  void ReportEvaluationAgain();

 private:
  using Evaluation = std::optional<v1::ReportEvaluationRequest>;
  CoordinatorClient* const client_;
  const uint32_t rank_;
  const uint64_t incarnation_;

  absl::Mutex mu_;
  std::array<Evaluation, 2> evaluations_ ABSL_GUARDED_BY(mu_);  // by Set
};

}  // namespace tributary
