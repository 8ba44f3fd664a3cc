// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/base/limits.h"

namespace tributary {

// The largest answer of a coordinator; both sides configure gRPC for it. The
// coordinator refuses what would make an answer larger: the limits below hold
// for each kind of answer that grows with the job.
inline constexpr size_t kMaxAnswerBytes = size_t{72} << 20;

// GetPlan: the names and shapes of the parameters. The remaining 1 MiB is for
// the addresses of the servers and the paths of checkpoints.
inline constexpr size_t kMaxPlanBytes = kMaxAnswerBytes - (size_t{1} << 20);

// Exchange: what a rank sends to each other rank of its group.
inline constexpr size_t kMaxPayloadBytes = size_t{64} << 10;  // to all of them
inline constexpr size_t kMaxPartBytes = 512;  // to one of them alone
inline constexpr size_t kFieldBytes = 16;     // protobuf's, at most
static_assert(kMaxRanks * (kMaxPayloadBytes + kMaxPartBytes + kFieldBytes) <=
              kMaxAnswerBytes);

}  // namespace tributary
