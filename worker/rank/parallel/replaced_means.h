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

// The means of running averages that the ranks' values replace, as the servers
// form them, for a group of ranks whose arrays lie in host memory. Their
// gradients' places have the ranks' values.
class ReplacedMeans {
 public:
  // Values that are exchanged at a time.
  static constexpr int64_t kChunk = 64 * 1024;

  // group and model must outlive it. chunk: instead of kChunk.
  ReplacedMeans(ReplacedMean how, Communicator* group, ParameterMemory* model,
                int64_t chunk = kChunk)
      : how_(how), group_(*group), model_(*model), chunk_(chunk) {}

  // Computes those among the parameters from `first` to `last`, before their
  // gradients are reduced. A call of all ranks. weights: of each rank.
  absl::Status Compute(int first, int last, absl::Span<const float> weights);
  // Writes what Compute has made in the gradients' places.
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
