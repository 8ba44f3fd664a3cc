// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/parallel/rank_sums.h"

namespace tributary {

// Sends the samples of this rank's step to all ranks of a group, and returns
// the samples of all ranks. step: counted from 0. rates: the program's learning
// rates; empty: those of the job's schedule. InvalidArgument, on every rank:
// the rates of two ranks differ. Further errors as in Communicator.
absl::StatusOr<std::vector<uint64_t>> ExchangeSamples(
    const Communicator& group, RankSums& sums, int64_t step, uint64_t samples,
    const std::vector<double>& rates);

}  // namespace tributary
