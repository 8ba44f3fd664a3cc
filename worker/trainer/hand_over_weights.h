#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/member/member.h"
#include "kernels/ops.h"
#include "tributary/v1/plan.pb.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/trainer/replica.h"

namespace tributary {

// Rank 0 makes the weights that training starts from: of all the plan's
// parameters for servers, else the first replica each rank's own. Returns the
// step after which training goes on.
absl::StatusOr<int64_t> StartWeights(Member& member, const Replica& replica,
                                     const v1::Plan& plan,
                                     GradientSynchronizer* synchronizer);

// Without servers the ranks have the weights that the job ends with, after
// `step`; the first that holds a parameter gives it to the coordinator.
absl::Status GiveWeights(Member& member, const Replica& replica, Ops& ops,
                         const v1::Plan& plan, int64_t step);

}  // namespace tributary
