// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/session/connect_group.h"
#include "worker/train/data/batches/step_plan.h"
#include "worker/train/trainer/replica.h"

namespace tributary {

// The objects with which a worker synchronizes its gradients. All must outlive
// the synchronizer.
struct SynchronizerParts {
  GroupParts group;
  const Replica* replica = nullptr;
  const StepPlan* steps = nullptr;
  bool recomputes = false;  // Member::DeclareArithmetic
  // Called with the shard whose server does not answer now; -1: all answer.
  std::function<void(int shard)> on_silent_shard;
  std::function<int64_t()> delay_micros;  // for tests, see ParameterClient
};

// Creates and connects the synchronizer of the job's strategy under this plan.
absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeSynchronizer(
    const SynchronizerParts& parts, const v1::Plan& plan);

}  // namespace tributary
