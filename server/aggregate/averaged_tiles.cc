#include "server/aggregate/averaged_tiles.h"

#include <algorithm>
#include <vector>

#include "common/wire/payload.h"
#include "kernels/ops.h"

namespace tributary {

void ForEachAveragedTile(
    Ops& ops, const GradientAggregator& aggregator, int64_t num_elements,
    const std::function<void(int64_t begin, int64_t n, const float* gradient)>&
        consume) {
  const std::vector<float> all_weights = aggregator.Weights();
  std::vector<FloatReader> readers;
  std::vector<float> weights;
  for (const Contribution& c : aggregator.contributions()) {
    if (c.samples == 0) continue;
    readers.emplace_back(c.payload);
    weights.push_back(all_weights[c.rank]);
  }
  const int count = static_cast<int>(readers.size());
  std::vector<float> scratch(kTileElements * (count + 1));
  std::vector<const float*> parts(count);
  float* mean = scratch.data() + kTileElements * count;

  for (int64_t begin = 0; begin < num_elements; begin += kTileElements) {
    const int64_t n = std::min(kTileElements, num_elements - begin);
    for (int i = 0; i < count; ++i) {
      parts[i] = readers[i].Next(n, scratch.data() + kTileElements * i);
    }
    if (count > 0) {
      ops.WeightedSum(n, count, parts.data(), weights.data(), mean);
    }  // else the mean stays zero
    consume(begin, n, mean);
  }
}

}  // namespace tributary
