#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/ops.h"

namespace tributary {
namespace {

using Kind = OptimizerOptions::Kind;
using Names = std::vector<std::string>;

OptimizerOptions Options(Kind kind) {
  OptimizerOptions options;
  options.kind = kind;
  return options;
}

TEST(OptimizerTest, StatesHavePyTorchsNames) {
  OptimizerOptions options = Options(Kind::kSgd);
  EXPECT_EQ(Optimizer(options).state_names(), Names());
  options.momentum = 0.9;
  EXPECT_EQ(Optimizer(options).state_names(), Names{"momentum_buffer"});
  options = Options(Kind::kAdamW);
  options.amsgrad = true;
  EXPECT_EQ(Optimizer(options).state_names(),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  options = Options(Kind::kRmsprop);
  options.centered = true;
  options.momentum = 0.9;
  EXPECT_EQ(Optimizer(options).state_names(),
            (Names{"square_avg", "momentum_buffer", "grad_avg"}));
  EXPECT_EQ(Optimizer(Options(Kind::kAdagrad)).state_names(), Names{"sum"});
  EXPECT_EQ(Optimizer(Options(Kind::kFtrl)).state_names(), (Names{"z", "n"}));
}

TEST(OptimizerTest, AccumulatorsStartWhereTheOptionsSay) {
  OptimizerOptions options = Options(Kind::kAdagrad);
  options.initial_accumulator = 0.25;
  EXPECT_EQ(Optimizer(options).initial_state(0), 0.25f);
  options.kind = Kind::kFtrl;
  EXPECT_EQ(Optimizer(options).initial_state(0), 0.0f);
  EXPECT_EQ(Optimizer(options).initial_state(1), 0.25f);
}

// buf = g whatever the dampening, then 0.5 buf + (1 - 0.25) g.
TEST(OptimizerTest, FirstMomentumStepTakesTheWholeGradient) {
  OptimizerOptions options = Options(Kind::kSgd);
  options.momentum = 0.5;
  options.dampening = 0.25;
  const Optimizer optimizer(options);
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  float weight = 1, buffer = 0;
  const float gradient = 4;
  float* const states[] = {&buffer};
  ops->OptimizerUpdate(optimizer.Prepare(1, 0.125, 1), 1, &gradient, &weight,
                       &weight, states);
  EXPECT_EQ(buffer, 4);
  EXPECT_EQ(weight, 0.5f);
  ops->OptimizerUpdate(optimizer.Prepare(2, 0.125, 1), 1, &gradient, &weight,
                       &weight, states);
  EXPECT_EQ(buffer, 5);
  EXPECT_EQ(weight, -0.125f);
}

// The gradient is clipped, the decay is not: 8 * 0.25 + 0.5 * 2 = 3.
TEST(OptimizerTest, ClipCoefficientScalesTheGradientBeforeTheDecay) {
  OptimizerOptions options = Options(Kind::kSgd);
  options.weight_decay = 0.5;
  const float gradient = 8, weight = 2;
  float out = 0;
  CreateCpuOps()->OptimizerUpdate(Optimizer(options).Prepare(1, 1, 0.25), 1,
                                  &gradient, &weight, &out, nullptr);
  EXPECT_EQ(out, -1);
}

TEST(OptimizerTest, TrustRatioIsTheQuotientOfNormsWithinBounds) {
  OptimizerOptions options = Options(Kind::kLamb);
  EXPECT_TRUE(Optimizer(options).needs_trust_ratio());
  EXPECT_EQ(Optimizer::TrustRatio(options, 6, 3), 2);
  EXPECT_EQ(Optimizer::TrustRatio(options, 0, 3), 1);
  EXPECT_EQ(Optimizer::TrustRatio(options, 6, 0), 1);
  options.clip_min = 1;
  options.clip_max = 4.5;
  EXPECT_EQ(Optimizer::TrustRatio(options, 6, 3), 1.5);
  EXPECT_EQ(Optimizer::TrustRatio(options, 0.5, 4), 0.25);
}

// With no gradient, FTRL keeps the weights that its z was made for.
TEST(OptimizerTest, FtrlStartsFromTheGivenWeights) {
  OptimizerOptions options = Options(Kind::kFtrl);
  options.learning_rate = 0.1;
  options.l1 = 0.25;
  options.l2 = 0.5;
  options.initial_accumulator = 0.1;
  const Optimizer optimizer(options);
  std::vector<float> weights = {0.5f, -2.0f, 0.0f, 1e-3f};
  std::vector<float> z(4), n(4), after(4);
  const std::vector<float> gradient(4, 0.0f);
  float* const states[] = {z.data(), n.data()};
  optimizer.InitializeState(4, weights.data(), states);
  CreateCpuOps()->OptimizerUpdate(optimizer.Prepare(1, 0.1, 1), 4,
                                  gradient.data(), weights.data(), after.data(),
                                  states);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(after[i], weights[i], 1e-6);
}

TEST(OptimizerTest, NoRuleMovesAWeightAtRateZero) {
  for (Kind kind : {Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kAdagrad,
                    Kind::kRmsprop, Kind::kFtrl}) {
    OptimizerOptions options = Options(kind);
    options.weight_decay = 0.1;
    const Optimizer optimizer(options);
    float weight = 1.5f, states[kMaxOptimizerStates] = {};
    float* const pointers[] = {states, states + 1, states + 2};
    optimizer.InitializeState(1, &weight, pointers);
    const float gradient = 3;
    CreateCpuOps()->OptimizerUpdate(optimizer.Prepare(1, 0, 1), 1, &gradient,
                                    &weight, &weight, pointers);
    EXPECT_EQ(weight, 1.5f) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace tributary
