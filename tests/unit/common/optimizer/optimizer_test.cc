// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/update/update_phases.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

using Names = std::vector<std::string>;

OptimizerOptions Options(const char* kind) {
  OptimizerOptions options;
  options.kind = kind;
  return options;
}

TEST(OptimizerTest, StatesHavePyTorchsNames) {
  OptimizerOptions options = Options("sgd");
  EXPECT_EQ(Optimizer(options).state_names(), Names());
  options.momentum = 0.9;
  EXPECT_EQ(Optimizer(options).state_names(), Names{"momentum_buffer"});
  options = Options("adamw");
  options.amsgrad = true;
  EXPECT_EQ(Optimizer(options).state_names(),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  options = Options("rmsprop");
  options.centered = true;
  options.momentum = 0.9;
  EXPECT_EQ(Optimizer(options).state_names(),
            (Names{"square_avg", "momentum_buffer", "grad_avg"}));
  EXPECT_EQ(Optimizer(Options("adagrad")).state_names(), Names{"sum"});
  EXPECT_EQ(Optimizer(Options("ftrl")).state_names(), (Names{"z", "n"}));
}

TEST(OptimizerTest, AccumulatorsStartWhereTheOptionsSay) {
  OptimizerOptions options = Options("adagrad");
  options.initial_accumulator = 0.25;
  const float weight = 0;
  float first = -1, second = -1;
  float* const states[] = {&first, &second};
  Optimizer(options).InitializeState(1, &weight, states);
  EXPECT_EQ(first, 0.25f);
  options.kind = "ftrl";
  Optimizer(options).InitializeState(1, &weight, states);
  EXPECT_EQ(first, 0.0f);
  EXPECT_EQ(second, 0.25f);
}

// buf = g whatever the dampening, then 0.5 buf + (1 - 0.25) g.
TEST(OptimizerTest, FirstMomentumStepTakesTheWholeGradient) {
  OptimizerOptions options = Options("sgd");
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
  OptimizerOptions options = Options("sgd");
  options.weight_decay = 0.5;
  const float gradient = 8, weight = 2;
  float out = 0;
  CreateCpuOps()->OptimizerUpdate(Optimizer(options).Prepare(1, 1, 0.25), 1,
                                  &gradient, &weight, &out, nullptr);
  EXPECT_EQ(out, -1);
}

double TrustRatio(const OptimizerOptions& options, double weight_norm,
                  double direction_norm) {
  return Optimizer(options).DirectionRate({.learning_rate = 1,
                                           .weight_norm = weight_norm,
                                           .direction_norm = direction_norm});
}

TEST(OptimizerTest, TrustRatioIsTheQuotientOfNormsWithinBounds) {
  OptimizerOptions options = Options("lamb");
  EXPECT_TRUE(Optimizer(options).makes_directions());
  EXPECT_EQ(TrustRatio(options, 6, 3), 2);
  EXPECT_EQ(TrustRatio(options, 0, 3), 1);
  EXPECT_EQ(TrustRatio(options, 6, 0), 1);
  options.clip_min = 1;
  options.clip_max = 4.5;
  EXPECT_EQ(TrustRatio(options, 6, 3), 1.5);
  EXPECT_EQ(TrustRatio(options, 0.5, 4), 0.25);
}

// With no gradient, FTRL keeps the weights, also when its rate differs from
// that of the step before.
TEST(OptimizerTest, FtrlStartsFromTheGivenWeights) {
  OptimizerOptions options = Options("ftrl");
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
  for (const double rate : {0.1, 0.01, 1e-4, 10.0}) {
    CreateCpuOps()->OptimizerUpdate(optimizer.Prepare(1, rate, 1), 4,
                                    gradient.data(), weights.data(),
                                    after.data(), states);
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(after[i], weights[i], 1e-6) << rate;
  }
}

// A schedule makes the steps shorter, as it does with every optimizer: without
// l1 and l2 a step is alpha g / (beta + sqrt(n)).
TEST(OptimizerTest, FtrlFollowsASchedule) {
  const Optimizer optimizer(Options("ftrl"));
  std::vector<float> weight = {0.5f}, z(1), n(1);
  float* const states[] = {z.data(), n.data()};
  optimizer.InitializeState(1, weight.data(), states);
  const float gradient = 0.3f;
  double wanted = 0.5, sum = 0;
  for (int step = 1; step <= 20; ++step) {
    const double rate = 0.1 / step;
    sum += double{gradient} * gradient;
    wanted -= rate * gradient / (1 + std::sqrt(sum));
    CreateCpuOps()->OptimizerUpdate(optimizer.Prepare(step, rate, 1), 1,
                                    &gradient, weight.data(), weight.data(),
                                    states);
    EXPECT_NEAR(weight[0], wanted, 1e-6) << step;
  }
}

// 3 + 0.25 (7 - 3) = 4, whatever the optimizer, its decay, rate and clipping;
// states stay.
TEST(OptimizerTest, ARunningAverageMovesToWhatComesByItsOwnMomentum) {
  const ParameterSpec running = {
      .name = "m", .shape = {1}, .running_momentum = 0.25};
  for (const char* kind :
       {"sgd", "adam", "adamw", "adagrad", "rmsprop", "lamb", "lion", "ftrl"}) {
    OptimizerOptions options = Options(kind);
    options.momentum = 0.9;
    options.weight_decay = 0.5;
    const Optimizer optimizer(options);
    float average = 3, states[kMaxOptimizerStates] = {};
    float* const pointers[] = {states, states + 1, states + 2};
    const float value = 7;
    CreateCpuOps()->OptimizerUpdate(
        optimizer.StepFor(running, optimizer.Prepare(3, 0.125, 0.01)), 1,
        &value, &average, &average, pointers);
    EXPECT_EQ(average, 4);
    for (float state : states) EXPECT_EQ(state, 0);
  }
}

// LAMB's two phases give the bits of one phase, and momentum 1 takes the value
// itself: w - (w - x) would make 0.125 of 0.1 after 1e6, and 0 after 1e8.
TEST(OptimizerTest, ARunningAverageMovesAlikeInTwoPhases) {
  for (const double momentum : {0.1, 1.0}) {
    const ParameterSpec running = {
        .name = "m", .shape = {4}, .running_momentum = momentum};
    const Optimizer optimizer(Options("lamb"));
    const OptimizerStep prepared = optimizer.Prepare(1, 1, 1);
    const std::unique_ptr<Ops> ops = CreateCpuOps();
    const std::vector<float> average = {1.1f, -0.3f, 1e6f, -1e8f};
    const std::vector<float> value = {0.7f, 12.3f, 0.1f, 1.0f};
    std::vector<float> once(4), direction(4), twice(4);
    ops->OptimizerUpdate(optimizer.StepFor(running, prepared), 4, value.data(),
                         average.data(), once.data(), nullptr);
    MakeDirection(*ops, optimizer, running, prepared, 4, value.data(),
                  average.data(), direction.data(), nullptr);
    ops->ApplyDirection(4, static_cast<float>(optimizer.RunningRate(running)),
                        optimizer.RunningScale(running), direction.data(),
                        average.data(), twice.data());
    EXPECT_EQ(once, twice);
    if (momentum == 1) {
      EXPECT_EQ(once, value);
    }
  }
}

TEST(OptimizerTest, TheOuterOptimizerTakesRunningAveragesAsTheyCome) {
  OptimizerOptions options = Options("sgd");
  options.takes_running_averages = true;
  EXPECT_EQ(Optimizer(options).RunningRate({.running_momentum = 0.1}), 1);
  options.takes_running_averages = false;
  EXPECT_EQ(Optimizer(options).RunningRate({.running_momentum = 0.1}), 0.1);
}

TEST(OptimizerTest, WhatComesForRunningAveragesIsNoPartOfTheGradientsNorm) {
  const ParameterSpecs parameters = {
      {"w", {1}}, {.name = "m", .shape = {1}, .running_momentum = 0.1}};
  EXPECT_EQ(Optimizer::GradientSquare(parameters, {9, 1e9}), 9);
}

TEST(OptimizerTest, NoRuleMovesAWeightAtRateZero) {
  for (const char* kind :
       {"sgd", "adam", "adamw", "adagrad", "rmsprop", "lion", "ftrl"}) {
    OptimizerOptions options = Options(kind);
    options.weight_decay = 0.1;
    const Optimizer optimizer(options);
    float weight = 1.5f, states[kMaxOptimizerStates] = {};
    float* const pointers[] = {states, states + 1, states + 2};
    optimizer.InitializeState(1, &weight, pointers);
    const float gradient = 3;
    CreateCpuOps()->OptimizerUpdate(optimizer.Prepare(1, 0, 1), 1, &gradient,
                                    &weight, &weight, pointers);
    EXPECT_EQ(weight, 1.5f) << kind;
  }
}

}  // namespace
}  // namespace tributary
