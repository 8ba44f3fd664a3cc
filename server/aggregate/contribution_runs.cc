// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/contribution_runs.h"

#include <algorithm>

#include "common/base/chunk_fold.h"

namespace tributary {
namespace {

// The shortest run, unless the block ends: a shorter one costs more in calls
// than the copy that makes it longer.
constexpr int64_t kShortest = 512;
constexpr int64_t kChunk = ChunkFold::kBytes / sizeof(float);

}  // namespace

ContributionRuns::ContributionRuns(const Block& block,
                                   const GradientAggregator& aggregator,
                                   const float* sum, int end)
    : copied_(block.sends_floats() ? kShortest : kLongest) {
  if (sum != nullptr) {
    AddFloats(block, sum);
    begins_with_sum_ = true;
  }
  const std::vector<float> weights = aggregator.Weights();
  for (int rank = aggregator.added(); rank < end; ++rank) {
    const Contribution& c = aggregator.contributions()[rank];
    if (c.samples == 0) continue;
    readers_.emplace_back(block, c.payload);
    weights_.push_back(weights[rank]);
    ranks_.push_back(rank);
  }
  parts_.resize(readers_.size());
  copies_.resize(readers_.size() * static_cast<size_t>(copied_));
}

ContributionRuns::ContributionRuns(const Block& block, const float* gradient)
    : parts_(1), copied_(kShortest), copies_(kShortest) {
  AddFloats(block, gradient);
}

// The weight 1 is exact: a product with 1 has the bits of the other factor.
void ContributionRuns::AddFloats(const Block& block, const float* floats) {
  floats_ = Payload({Payload::Piece(reinterpret_cast<const char*>(floats),
                                    static_cast<size_t>(block.bytes()))},
                    /*owner=*/nullptr);
  readers_.push_back(GradientReader::OfFloats(block, floats_));
  weights_.push_back(1.0f);
  ranks_.push_back(-1);
}

int64_t ContributionRuns::Next(int64_t limit) {
  int64_t n = std::min(limit, kLongest);
  for (GradientReader& reader : readers_) n = std::min(n, reader.Ahead());
  // Whole chunks, so that few are computed one element at a time.
  n = std::max(n / kChunk * kChunk, std::min(limit, kShortest));
  for (size_t i = 0; i < readers_.size(); ++i) {
    parts_[i] =
        readers_[i].Next(n, copies_.data() + static_cast<int64_t>(i) * copied_);
  }
  return n;
}

}  // namespace tributary
