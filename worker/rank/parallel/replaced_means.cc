// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/replaced_means.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace tributary {

absl::Status ReplacedMeans::Compute(int first, int last,
                                    absl::Span<const float> weights) {
  means_.clear();
  if (how_ == ReplacedMean::kAsGradients) return absl::OkStatus();
  for (int p = first; p <= last; ++p) {
    const ParameterSpec& spec = model_.parameters()[p];
    if (spec.running_momentum != 1) continue;
    std::vector<float>& mean =
        means_.emplace_back(p, std::vector<float>(spec.size())).second;
    const float* const values = model_.gradient(p);
    if (how_ == ReplacedMean::kOfRank0) {
      TRIBUTARY_RETURN_IF_ERROR(
          OfRank0(weights, spec.size(), values, model_.weight(p), mean.data()));
    } else {
      TRIBUTARY_RETURN_IF_ERROR(
          Mean(weights, spec.size(), values, model_.weight(p), mean.data()));
    }
  }
  return absl::OkStatus();
}

absl::Status ReplacedMeans::OfRank0(absl::Span<const float> weights, int64_t n,
                                    const float* values, const float* old,
                                    float* mean) {
  std::copy_n(weights[0] > 0 ? values : old, n, mean);
  return group_.Broadcast(mean, n, /*root=*/0);
}

absl::Status ReplacedMeans::Mean(absl::Span<const float> weights, int64_t n,
                                 const float* values, const float* old,
                                 float* mean) {
  std::vector<float> counted;
  for (const float weight : weights) {
    if (weight > 0) counted.push_back(weight);
  }
  if (counted.empty()) {  // on every rank
    std::copy_n(old, n, mean);
    return absl::OkStatus();
  }
  for (int64_t begin = 0; begin < n; begin += chunk_) {
    const int64_t count = std::min(chunk_, n - begin);
    gathered_.resize(count * group_.size());
    std::vector<int64_t> bounds;
    std::vector<const float*> parts;
    for (int r = 0; r <= group_.size(); ++r) bounds.push_back(r * count);
    for (int r = 0; r < group_.size(); ++r) {
      if (weights[r] > 0) parts.push_back(gathered_.data() + bounds[r]);
    }
    std::copy_n(values + begin, count,
                gathered_.data() + bounds[group_.rank()]);
    TRIBUTARY_RETURN_IF_ERROR(group_.AllGather(gathered_.data(), bounds));
    MeanInDouble(count, static_cast<int>(parts.size()), parts.data(),
                 counted.data(), /*sum=*/nullptr, /*weight=*/0, mean + begin);
  }
  return absl::OkStatus();
}

void ReplacedMeans::Put() {
  for (const auto& [p, mean] : means_) {
    std::copy(mean.begin(), mean.end(), model_.gradient(p));
  }
}

}  // namespace tributary
