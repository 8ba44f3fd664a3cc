#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tributary/v1/plan.pb.h"
#include "worker/data/step_plan.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/trainer/connect_group.h"
#include "worker/trainer/replica.h"

namespace tributary {

// What a worker brings to the synchronization of its gradients; all outlives
// the synchronizer.
struct SynchronizerParts {
  GroupParts group;
  const Replica* replica = nullptr;
  const StepPlan* steps = nullptr;
  bool recomputes = false;  // Member::DeclareArithmetic
  // Told which server does not answer at the moment; -1: all do.
  std::function<void(int shard)> on_silent_shard;
  std::function<int64_t()> delay_micros;  // for tests, see ParameterClient
};

// What the job's strategy asks for, connected under this plan.
absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeSynchronizer(
    const SynchronizerParts& parts, const v1::Plan& plan);

}  // namespace tributary
