// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/member/member.h"
#include "worker/rank/parallel/gradient_synchronizer.h"

namespace tributary {

// Takes part in a checkpoint of `step` if somebody has asked for one.
absl::Status TakeAskedCheckpoint(int64_t step, Member* member,
                                 GradientSynchronizer* synchronizer);

// Asks the job before each step, counted from 1, whether the step may begin.
// Every rank that passes this gate, or is stopped there, learns of a checkpoint
// that is asked for and takes part in it. Cancelled: the job ends after the
// previous step. Other errors are those of Member::BeginStep and of the
// checkpoint.
absl::Status PassGate(int64_t step, Member* member,
                      GradientSynchronizer* synchronizer);

}  // namespace tributary
