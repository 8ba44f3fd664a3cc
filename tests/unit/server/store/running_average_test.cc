// SPDX-License-Identifier: Apache-2.0
// Running averages, such as batch normalization's, among a shard's parameters.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  // Expects `average` in all averages and `weight` in all weights.
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

// The gradient's norm is sqrt(2 * 3^2), from the weights only.
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

// Seven ranks, whose shares of the samples float32 rounds.
class ReplacedAverageTest : public RunningAverageTest {
 protected:
  static constexpr int kRanks = 7;

  void CreateWith(ReplacedMean mean, const std::string& kind, int64_t group) {
    parameters_[1].running_momentum = 1;
    ParameterShard::Options options;
    options.num_workers = kRanks;
    options.training.policy = std::make_unique<BulkSynchronous>();
    options.training.optimizer.kind = kind;
    options.training.optimizer.epsilon = 1e-12;
    options.training.replaced_mean = mean;
    options.training.summation.group = group;
    Create(std::move(options));
    InitializeAt(8);
  }
  // The running averages after a step in which rank r sends values[r] for r + 1
  // samples; ranks without a value have no samples.
  float Step(const std::vector<float>& values) {
    uint64_t total = 0;
    for (size_t r = 0; r < values.size(); ++r) total += r + 1;
    Answer last;
    for (uint32_t r = 0; r < kRanks; ++r) {
      const bool counts = r < values.size() && !std::isnan(values[r]);
      Contribution c = Make(r, step_, counts ? values[r] : 0,
                            /*samples=*/counts ? r + 1 : 0);
      c.total_samples = announced_ ? total : 0;
      last = Push(std::move(c));
    }
    ++step_;
    EXPECT_TRUE(last->has_value() && (*last)->ok());
    EXPECT_EQ((**last)->weights.data()[0], (**last)->weights.data()[1]);
    return (**last)->weights.data()[0];
  }

  int64_t step_ = 0;
  bool announced_ = false;
};

TEST_F(ReplacedAverageTest, TheMeanOfEqualValuesIsThisValue) {
  for (const char* kind : {"sgd", "lamb"}) {
    for (const int64_t group : {int64_t{1}, StepGradient::kGroup}) {
      step_ = 0;
      announced_ = group == 1;
      CreateWith(ReplacedMean::kExact, kind, group);
      for (const float value : {0.1f, 1e30f, 0.3f, 1e-7f, 0.7f}) {
        EXPECT_EQ(Step(std::vector<float>(kRanks, value)), value) << kind;
      }
      EXPECT_FLOAT_EQ(Step({1, 2, 3, 4, 5, 6, 7}), 140 / 28.0f);
      EXPECT_EQ(shard_->held_bytes(), 0u);
    }
  }
}

TEST_F(ReplacedAverageTest, Rank0sValueCountsWhileItHasSamples) {
  for (const char* kind : {"sgd", "lamb"}) {
    for (const int64_t group : {int64_t{1}, StepGradient::kGroup}) {
      step_ = 0;
      announced_ = group == 1;
      CreateWith(ReplacedMean::kOfRank0, kind, group);
      EXPECT_EQ(Step({0.1f, 5, 6, 7, 8, 9, 1}), 0.1f) << kind;
      EXPECT_EQ(Step({0.3f, 5, 6}), 0.3f) << kind;
      announced_ = false;
      EXPECT_EQ(Step({NAN, 5, 6}), 0.3f) << kind;
    }
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
  // 7 after the first push. A stale gradient counts half, an average in full.
  Push(Make(0, 1, 3.0f));
  ExpectState(Push(Make(1, 0, 2.0f)), 5, -8);
}

}  // namespace
}  // namespace tributary
