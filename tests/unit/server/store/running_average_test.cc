// SPDX-License-Identifier: Apache-2.0
// Running averages, such as batch normalization's, among a shard's parameters.
#include <cmath>
#include <memory>

#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

// A shard with two weights and a running average of two values, whose momentum
// is a quarter. Blocks begin with the last parameter, so the averages come
// first.
class RunningAverageTest : public ParameterShardTest {
 protected:
  RunningAverageTest() {
    parameters_ = {{"w", {2}},
                   {.name = "m", .shape = {2}, .running_momentum = 0.25}};
  }

  void InitializeAt(float average) {
    const Payload start = Floats({average, average, 0, 0});
    TRIBUTARY_EXPECT_OK(
        shard_->Initialize(0, start.ScanFloats().crc32c, start));
  }
  // All averages, all weights.
  static void ExpectState(const Answer& answer, float average, float weight) {
    ASSERT_TRUE(answer->has_value() && (*answer)->ok());
    const float* got = (**answer)->weights.data();
    EXPECT_EQ(got[0], average);
    EXPECT_EQ(got[1], average);
    EXPECT_FLOAT_EQ(got[2], weight);
    EXPECT_FLOAT_EQ(got[3], weight);
  }
};

// The mean of what comes is 3: 8 + (3 - 8) / 4 = 6.75. The weights are Adam's,
// the first of whose steps is the rate.
TEST_F(RunningAverageTest, MovesToTheRanksMeanBesideAnyOptimizer) {
  OptimizerOptions adam;
  adam.kind = "adam";
  adam.weight_decay = 0;
  Create(2, adam);
  InitializeAt(8);
  Push(Make(0, 0, 2.0f));
  ExpectState(Push(Make(1, 0, 4.0f)), 6.75f, -1.0f);
}

// The gradient's norm is sqrt(2 * 3^2), of the weights alone.
TEST_F(RunningAverageTest, IsNeitherClippedNorPartOfTheNorm) {
  Create(2, {}, /*clip_norm=*/3);
  InitializeAt(8);
  Push(Make(0, 0, 2.0f));
  const double norm = std::sqrt(18.0);
  ExpectState(Push(Make(1, 0, 4.0f)), 6.75f,
              static_cast<float>(-3 * 3 / (norm + 1e-6)));
}

// The weights' direction is 1 each and they are 0, so the ratio is 1.
TEST_F(RunningAverageTest, TakesNoTrustRatio) {
  OptimizerOptions lamb;
  lamb.kind = "lamb";
  lamb.epsilon = 1e-12;
  Create(2, lamb);
  InitializeAt(8);
  Push(Make(0, 0, 2.0f));
  ExpectState(Push(Make(1, 0, 4.0f)), 6.75f, -1.0f);
}

TEST_F(RunningAverageTest, StaysWhereNobodyHasASample) {
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<Asynchronous>();
  Create(std::move(options));
  InitializeAt(8);
  ExpectState(Push(Make(0, 0, 0, /*samples=*/0)), 8, 0);
  ExpectState(Push(Make(1, 0, 4.0f)), 7, -4);
}

// The mean of 2 and 4 is subtracted; nobody's samples move nothing.
TEST_F(RunningAverageTest, MovesAsFarAsTheRanksHaveMovedIt) {
  for (const char* kind : {"sgd", "lamb"}) {
    OptimizerOptions optimizer;
    optimizer.kind = kind;
    optimizer.epsilon = 1e-12;
    optimizer.takes_movements = true;
    Create(2, optimizer);
    InitializeAt(8);
    Push(Make(0, 0, 2.0f));
    const float weight = optimizer.kind == "lamb" ? -1 : -3;
    ExpectState(Push(Make(1, 0, 4.0f)), 5, weight);
    Push(Make(0, 1, 0, /*samples=*/0));
    const Answer last = Push(Make(1, 1, 0, /*samples=*/0));
    ASSERT_TRUE(last->has_value() && (*last)->ok());
    EXPECT_EQ((**last)->weights.data()[0], 5);
  }
}

TEST_F(RunningAverageTest, MomentumOneTakesWhatComesWithoutRounding) {
  parameters_[1].running_momentum = 1;
  for (const char* kind : {"sgd", "lamb"}) {
    OptimizerOptions optimizer;
    optimizer.kind = kind;
    optimizer.epsilon = 1e-12;
    Create(1, optimizer);
    InitializeAt(1e8f);
    ExpectState(Push(Make(0, 0, 0.1f)), 0.1f,
                optimizer.kind == "lamb" ? -1.0f : -0.1f);
  }
}

TEST_F(RunningAverageTest, MomentumOneStaysWhereNobodyHasASample) {
  parameters_[1].running_momentum = 1;
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<Asynchronous>();
  Create(std::move(options));
  InitializeAt(8);
  ExpectState(Push(Make(0, 0, 0, /*samples=*/0)), 8, 0);
}

TEST_F(RunningAverageTest, MovesAtOnceWhereGradientsAreNotGathered) {
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<Asynchronous>();
  options.training.scale_by_staleness = true;
  Create(std::move(options));
  InitializeAt(8);
  Push(Make(0, 0, 4.0f));
  // 7 after the first; a stale gradient counts half, what is seen does not.
  Push(Make(0, 1, 3.0f));
  ExpectState(Push(Make(1, 0, 2.0f)), 5, -8);
}

}  // namespace
}  // namespace tributary
