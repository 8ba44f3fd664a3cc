// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/member/member.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/train/trainer/replica.h"

namespace tributary {

// Starts the synchronizer with the initial weights: with servers, rank 0 makes
// those of all the plan's parameters; else each rank of the first replica makes
// its own. Returns the number of finished steps, after which training
// continues.
absl::StatusOr<int64_t> StartWeights(Member& member, const Replica& replica,
                                     const v1::Plan& plan,
                                     GradientSynchronizer* synchronizer);

}  // namespace tributary
