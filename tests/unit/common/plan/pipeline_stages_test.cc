// SPDX-License-Identifier: Apache-2.0
#include "common/plan/pipeline_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tributary {
namespace {

using ::testing::ElementsAre;

// The best of all cuts, by trying them: least greatest cost, then later bounds.
std::vector<int> TryAllCuts(const std::vector<double>& costs, int stages) {
  const int layers = static_cast<int>(costs.size());
  std::vector<int> best;
  double least = 0;
  for (int set = 0; set < 1 << (layers - 1); ++set) {  // bit i: cut after i
    std::vector<int> bounds = {0};
    for (int i = 0; i + 1 < layers; ++i) {
      if ((set >> i) & 1) bounds.push_back(i + 1);
    }
    bounds.push_back(layers);
    if (static_cast<int>(bounds.size()) != stages + 1) continue;
    double greatest = 0;
    for (int s = 0; s < stages; ++s) {
      double sum = 0;
      for (int i = bounds[s]; i < bounds[s + 1]; ++i) sum += costs[i];
      greatest = std::max(greatest, sum);
    }
    if (best.empty() || greatest < least ||
        (greatest == least && bounds > best)) {
      best = bounds;
      least = greatest;
    }
  }
  return best;
}

TEST(CutStagesTest, TheGreatestCostIsLeastAndEarlierStagesTakeMore) {
  EXPECT_THAT(CutStages({1, 1, 1, 1}, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(CutStages({2, 1, 1}, 2), ElementsAre(0, 1, 3));
  EXPECT_THAT(CutStages({1, 1, 1}, 2), ElementsAre(0, 2, 3));  // or 0, 1, 3
  EXPECT_THAT(CutStages({1, 1, 1, 9}, 3), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(CutStages({0, 0, 0, 0}, 3), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(CutStages({5}, 1), ElementsAre(0, 1));
}

TEST(CutStagesTest, NoOtherCutIsBetter) {
  uint64_t state = 1;
  for (int layers = 1; layers <= 9; ++layers) {
    for (int trial = 0; trial < 30; ++trial) {
      std::vector<double> costs;
      for (int i = 0; i < layers; ++i) {  // whole numbers: sums are exact
        state = state * 6364136223846793005u + 1442695040888963407u;
        costs.push_back(static_cast<double>((state >> 33) % 7));
      }
      for (int stages = 1; stages <= layers; ++stages) {
        EXPECT_EQ(CutStages(costs, stages), TryAllCuts(costs, stages))
            << ::testing::PrintToString(costs) << " in " << stages;
      }
    }
  }
}

TEST(CutStagesTest, AStageKnowsItsLayers) {
  const std::vector<int> bounds = {0, 2, 3, 7};
  for (int layer = 0; layer < 7; ++layer) {
    EXPECT_EQ(StageOfLayer(bounds, layer), layer < 2 ? 0 : layer < 3 ? 1 : 2);
  }
}

}  // namespace
}  // namespace tributary
