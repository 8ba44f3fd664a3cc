#pragma once

#include <cstdint>
#include <functional>

#include "server/aggregate/gradient_aggregator.h"

namespace tributary {

class Ops;

// Elements that are summed and updated together: few enough for the first-level
// cache, so that memory is read and written once.
inline constexpr int64_t kTileElements = 2048;

// Walks a block tile by tile: gives `consume` the weighted mean of the
// contributions (in rank order, docs/consistency.md) for elements
// [begin, begin + n). Contributions without samples are left out.
void ForEachAveragedTile(
    Ops& ops, const GradientAggregator& aggregator, int64_t num_elements,
    const std::function<void(int64_t begin, int64_t n, const float* gradient)>&
        consume);

}  // namespace tributary
