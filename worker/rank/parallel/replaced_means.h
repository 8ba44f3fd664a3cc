// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/parameter_memory.h"
#include "common/base/replaced_mean.h"
#include "worker/rank/collective/communicator.h"

namespace tributary {

// Replaces running averages by values computed from those of all ranks, as the
// servers do, for arrays in host memory. A rank's values of such an average are
// where its gradient would be.
class ReplacedMeans {
 public:
  // Values that are exchanged at a time.
  static constexpr int64_t kChunk = 64 * 1024;

  // group and model must outlive it. chunk: instead of kChunk.
  ReplacedMeans(ReplacedMean how, Communicator* group, ParameterMemory* model,
                int64_t chunk = kChunk)
      : how_(how), group_(*group), model_(*model), chunk_(chunk) {}

  // Computes the averages among parameters `first` to `last`, before the
  // gradients are reduced. All ranks must call this. weights: one for each
  // rank.
  absl::Status Compute(int first, int last, absl::Span<const float> weights);
  // Writes the results of Compute to where the gradients would be.
  void Put();

 private:
  absl::Status Mean(absl::Span<const float> weights, int64_t n,
                    const float* values, const float* old, float* mean);
  absl::Status OfRank0(absl::Span<const float> weights, int64_t n,
                       const float* values, const float* old, float* mean);

  const ReplacedMean how_;
  Communicator& group_;
  ParameterMemory& model_;
  const int64_t chunk_;
  std::vector<float> gathered_;  // [rank][element of the chunk]
  std::vector<std::pair<int, std::vector<float>>> means_;  // of parameters
};

}  // namespace tributary
