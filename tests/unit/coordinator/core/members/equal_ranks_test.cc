// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/equal_ranks.h"

#include <gmock/gmock.h>

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The notice after these steps. A rank whose sample is above 0 has another
// number in each step.
std::string After(EqualRanks& ranks, int steps,
                  const std::vector<uint32_t>& samples) {
  for (int step = 0; step < steps; ++step) {
    std::vector<uint32_t> changed = samples;
    for (uint32_t& sample : changed) sample *= 1000 + step;
    ranks.Add(changed);
  }
  return ranks.TakeNotice();
}

TEST(EqualRanksTest, TenEqualStepsInARowAreToldOnce) {
  EqualRanks ranks;
  EXPECT_THAT(After(ranks, EqualRanks::kSteps - 1, {3, 4, 3}), IsEmpty());
  EXPECT_THAT(After(ranks, 1, {3, 4, 3}), HasSubstr("ranks 0, 2 computed"));
  EXPECT_THAT(After(ranks, 50, {3, 3, 3}), IsEmpty());
}

TEST(EqualRanksTest, AllEqualRanksAreNamed) {
  EqualRanks ranks;
  EXPECT_THAT(After(ranks, EqualRanks::kSteps, {5, 5, 5}),
              HasSubstr("ranks 0, 1, 2 computed"));
}

TEST(EqualRanksTest, ADifferentStepBeginsAnew) {
  EqualRanks ranks;
  EXPECT_THAT(After(ranks, EqualRanks::kSteps - 1, {3, 3}), IsEmpty());
  EXPECT_THAT(After(ranks, 1, {3, 4}), IsEmpty());
  EXPECT_THAT(After(ranks, EqualRanks::kSteps - 1, {3, 3}), IsEmpty());
  // Equal to a different rank than before.
  EqualRanks others;
  EXPECT_THAT(After(others, EqualRanks::kSteps - 1, {3, 4, 3}), IsEmpty());
  EXPECT_THAT(After(others, EqualRanks::kSteps - 1, {3, 4, 4}), IsEmpty());
}

TEST(EqualRanksTest, ZerosSayNothing) {
  EqualRanks ranks;
  EXPECT_THAT(After(ranks, 100, {0, 0, 0}), IsEmpty());
  EXPECT_THAT(After(ranks, EqualRanks::kSteps - 1, {3, 3, 0}), IsEmpty());
  EXPECT_THAT(After(ranks, 20, {3, 0, 0}), IsEmpty());
  EXPECT_THAT(After(ranks, 1, {3, 3, 0}), HasSubstr("ranks 0, 1 computed"));
}

TEST(EqualRanksTest, OneRankHasNoTwin) {
  EqualRanks ranks;
  EXPECT_THAT(After(ranks, 100, {3}), IsEmpty());
}

}  // namespace
}  // namespace tributary
