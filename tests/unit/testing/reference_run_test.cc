// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/reference_run.h"

#include <gtest/gtest.h>

#include <limits>

namespace tributary::testing {
namespace {

// One parameter of one weight, from 8; rank r's gradient is r + 1 + the weight.
// Rank 0 has one sample, rank 1 has three: the mean is weight + 1.75.
ReferenceRun::Options TwoWorkers() {
  ReferenceRun::Options options;
  options.parameters = {{"w", {1}}};
  options.workers = 2;
  options.learning_rate = [](int64_t) { return 1.0; };
  options.initial = {{8.0f}};
  options.samples = [](uint32_t rank, int64_t) { return 1 + 2 * rank; };
  options.gradient = [](uint32_t rank, int64_t, const auto& weights,
                        auto* gradient) {
    (*gradient)[0][0] = static_cast<float>(rank + 1) + weights[0][0];
  };
  return options;
}

TEST(ReferenceRunTest, WeightsGradientsBySamples) {
  ReferenceRun run(TwoWorkers());
  EXPECT_EQ(run.After(0).weights[0][0], 8);
  EXPECT_EQ(run.After(1).weights[0][0], -1.75f);
  EXPECT_EQ(run.After(2).weights[0][0], -1.75f);
}

TEST(ReferenceRunTest, ARankWithoutSamplesIsLeftOut) {
  ReferenceRun::Options options = TwoWorkers();
  options.samples = [](uint32_t rank, int64_t) { return rank; };
  EXPECT_EQ(ReferenceRun(options).After(1).weights[0][0], -2);
}

// |gradient| = 9.75, clipped to 3: the coefficient is 3 / (9.75 + 1e-6).
TEST(ReferenceRunTest, ClipsTheMeanGradient) {
  ReferenceRun::Options options = TwoWorkers();
  options.clip_norm = 3;
  EXPECT_NEAR(ReferenceRun(options).After(1).weights[0][0], 5, 1e-6);
}

// The buffer holds 9.75, then 0.5 * 9.75 + (-1.75 + 1.75).
TEST(ReferenceRunTest, KeepsTheOptimizersState) {
  ReferenceRun::Options options = TwoWorkers();
  options.optimizer.momentum = 0.5;
  ReferenceRun run(options);
  EXPECT_EQ(run.After(1).state[0][0][0], 9.75f);
  EXPECT_EQ(run.After(2).state[0][0][0], 4.875f);
}

TEST(ReferenceRunTest, AStepThatIsNotFiniteChangesNothingWhereTheJobSaysSo) {
  ReferenceRun::Options options = TwoWorkers();
  options.skip_nonfinite = true;
  options.gradient = [](uint32_t, int64_t step, const auto&, auto* gradient) {
    (*gradient)[0][0] = step == 0 ? std::numeric_limits<float>::infinity() : 1;
  };
  ReferenceRun run(options);
  EXPECT_EQ(run.After(1).weights[0][0], 8);
  EXPECT_EQ(run.After(2).weights[0][0], 7);
}

}  // namespace
}  // namespace tributary::testing
