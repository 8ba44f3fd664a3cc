// SPDX-License-Identifier: Apache-2.0
#include "common/plan/pipeline_stages.h"

#include <algorithm>

#include "common/base/check.h"

namespace tributary {
namespace {

// Costs of ranges, as differences of sums over the first layers. The cost of a
// range has the same bits each time.
class RangeCosts {
 public:
  explicit RangeCosts(absl::Span<const double> costs) : sums_{0} {
    for (double cost : costs) {
      TRIBUTARY_CHECK(cost >= 0);
      sums_.push_back(sums_.back() + cost);
    }
  }
  int layers() const { return static_cast<int>(sums_.size()) - 1; }
  double operator()(int begin, int end) const {
    return sums_[end] - sums_[begin];
  }

 private:
  std::vector<double> sums_;
};

// The smallest possible value of the largest cost of a range, by dynamic
// programming: least[i] is this value for the first i layers in `stage` stages.
// least[i] grows with i, and the cost of the last range falls as the range
// begins later, so the best beginning is where the two cross.
double LeastGreatestCost(const RangeCosts& cost, int stages) {
  const int layers = cost.layers();
  std::vector<double> least(layers + 1);
  for (int i = 1; i <= layers; ++i) least[i] = cost(0, i);
  for (int stage = 2; stage <= stages; ++stage) {
    for (int i = layers; i >= stage; --i) {
      int low = stage - 1, high = i - 1;  // where the last range may begin
      while (low < high) {
        const int middle = (low + high) / 2;
        if (least[middle] >= cost(middle, i)) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      double best = std::max(least[low], cost(low, i));
      if (low > stage - 1) {
        best = std::min(best, std::max(least[low - 1], cost(low - 1, i)));
      }
      least[i] = best;
    }
  }
  return least[layers];
}

}  // namespace

std::vector<int> CutStages(absl::Span<const double> costs, int stages) {
  const RangeCosts cost(costs);
  TRIBUTARY_CHECK(stages >= 1 && stages <= cost.layers());
  const double limit = LeastGreatestCost(cost, stages);
  // A range that ends later leaves fewer layers to the others, so each ends as
  // late as the limit allows, but leaves a layer to every later range.
  std::vector<int> bounds = {0};
  for (int left = stages - 1; left > 0; --left) {
    int end = bounds.back() + 1;
    while (end < cost.layers() - left &&
           cost(bounds.back(), end + 1) <= limit) {
      ++end;
    }
    bounds.push_back(end);
  }
  bounds.push_back(cost.layers());
  return bounds;
}

int StageOfLayer(absl::Span<const int> bounds, int layer) {
  const auto next = std::upper_bound(bounds.begin(), bounds.end(), layer);
  return static_cast<int>(next - bounds.begin()) - 1;
}

}  // namespace tributary
