// SPDX-License-Identifier: Apache-2.0
// Parameter groups, frozen parameters and learning rates that come with
// contributions.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;
using Rates = std::vector<double>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ParameterGroupsTest : public ParameterShardTest {
 protected:
  // Plain SGD with rate 1; "b" has half of it, "c" is frozen.
  void CreateGroups(OptimizerOptions optimizer, double clip_norm = 0,
                    std::unique_ptr<SyncPolicy> policy =
                        std::make_unique<BulkSynchronous>()) {
    parameters_ = {{"a", {1}}, {"b", {1}}, {"c", {1, 2}}};
    ParameterShard::Options options;
    options.num_workers = 2;
    options.training.optimizer = optimizer;
    options.training.clip_norm = clip_norm;
    options.training.policy = std::move(policy);
    options.training.groups = {{.parameters = {"b"},
                                .optimizer = optimizer,
                                .learning_rate = [](int64_t) { return 0.5; }},
                               {.parameters = {"c"},
                                .optimizer = optimizer,
                                .learning_rate = [](int64_t) { return 1.0; },
                                .frozen = true}};
    Create(std::move(options));
    ASSERT_EQ(plan_->blocks(0).size(), 1u);
    Initialize();
  }

  // Puts the values of "a", "b" and "c" into the order of the block's slices.
  std::vector<float> InOrder(const std::vector<float>& a_b_c) const {
    static constexpr int kFirst[] = {0, 1, 2};
    std::vector<float> values;
    for (const Slice& slice : plan_->blocks(0)[0].slices) {
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        values.push_back(a_b_c[kFirst[slice.parameter] + i]);
      }
    }
    return values;
  }
  Contribution Gradient(uint32_t rank, int64_t step,
                        const std::vector<float>& a_b_c,
                        Rates rates = {}) const {
    Contribution c = Make(rank, step, 0);
    c.payload = Floats(InOrder(a_b_c));
    c.crc32c = c.payload.ScanFloats().crc32c;
    c.learning_rates = std::move(rates);
    return c;
  }
  void ExpectWeights(const Answer& answer, const std::vector<float>& a_b_c) {
    ASSERT_TRUE(answer->has_value());
    ASSERT_TRUE((**answer).ok()) << (**answer).status();
    const float* const weights = (**answer)->weights.data();
    EXPECT_EQ(std::vector<float>(weights, weights + 4), InOrder(a_b_c));
  }
};

TEST_F(ParameterGroupsTest, EveryGroupHasItsRateAndAFrozenOneStays) {
  CreateGroups({});
  Push(Gradient(0, 0, {2, 4, kNan, 1}));
  ExpectWeights(Push(Gradient(1, 0, {4, 8, 1, INFINITY})), {-3, -3, 0, 0});
  EXPECT_EQ(shard_->counters().nonfinite, 0u);
}

// The norm of 3 and 4 is 5; the clip coefficient is 1 / (5 + 1e-6).
TEST_F(ParameterGroupsTest, AFrozenParameterDoesNotCountInTheNorm) {
  CreateGroups({}, /*clip_norm=*/1);
  Push(Gradient(0, 0, {3, 4, 1000, kNan}));
  const Answer answer = Push(Gradient(1, 0, {3, 4, 1000, 1}));
  ASSERT_TRUE(answer->has_value());
  const float* const weights = (**answer)->weights.data();
  const std::vector<float> expected = InOrder({-0.6f, -0.4f, 0, 0});
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(weights[i], expected[i], 1e-6) << i;
  }
}

TEST_F(ParameterGroupsTest, OtherParametersMustBeFinite) {
  CreateGroups({});
  EXPECT_THAT(**Push(Gradient(0, 0, {2, kNan, kNan, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "is not finite in \"b\", element 0"));
}

// Weights after two steps do not depend on a frozen parameter's gradient,
// whatever the phases of a step are.
TEST_F(ParameterGroupsTest, AFrozenGradientChangesNothingInAnyPhase) {
  for (const char* kind : {"sgd", "adam", "lamb", "adafactor", "adagrad"}) {
    for (double clip_norm : {0.0, 0.5}) {
      std::vector<float> weights[2];
      for (const bool wild : {false, true}) {
        OptimizerOptions options;
        options.kind = kind;
        options.initial_accumulator = 0.1;
        CreateGroups(options, clip_norm);
        Answer answer;
        for (int64_t step = 0; step < 2; ++step) {
          for (uint32_t rank : {0, 1}) {
            const float x = wild && rank == 1 ? kNan : 0;
            answer = Push(Gradient(rank, step, {2.0f + rank, -4, x, x}));
          }
        }
        ASSERT_TRUE(answer->has_value());
        const float* const got = (**answer)->weights.data();
        weights[wild].assign(got, got + 4);
      }
      EXPECT_EQ(weights[0], weights[1]) << kind << ", " << clip_norm;
      EXPECT_NE(weights[0], InOrder({0, 0, 0, 0})) << kind;
      for (size_t i = 0; i < 4; ++i) {
        if (InOrder({0, 0, 1, 1})[i] == 1) {
          EXPECT_EQ(weights[1][i], 0);
        }
      }
    }
  }
}

TEST_F(ParameterGroupsTest, SentRatesReplaceTheScheduleInThatStep) {
  CreateGroups({});
  Push(Gradient(0, 0, {2, 2, 2, 2}, {0.25, 2, 9}));
  ExpectWeights(Push(Gradient(1, 0, {2, 2, 2, 2}, {0.25, 2, 9})),
                {-0.5f, -4, 0, 0});
  Push(Gradient(0, 1, {2, 2, 2, 2}));
  ExpectWeights(Push(Gradient(1, 1, {2, 2, 2, 2})), {-2.5f, -5, 0, 0});
}

// Rates that are sent give the bits of the same rates from the schedule, and
// with 0 nothing moves.
TEST_F(ParameterGroupsTest, SentRatesHoldInAllPhasesOfAStep) {
  for (const char* kind : {"sgd", "adamw", "lamb", "adafactor"}) {
    for (double clip_norm : {0.0, 0.5}) {
      std::vector<float> weights[2];
      for (const bool sends : {false, true}) {
        OptimizerOptions options;
        options.kind = kind;
        CreateGroups(options, clip_norm);
        Answer answer;
        for (int64_t step = 0; step < 2; ++step) {
          for (uint32_t rank : {0, 1}) {
            answer = Push(Gradient(rank, step, {2, -4, 1, 1},
                                   sends ? Rates{1, 0.5, 1} : Rates{}));
          }
        }
        ASSERT_TRUE(answer->has_value());
        const float* const got = (**answer)->weights.data();
        weights[sends].assign(got, got + 4);
      }
      EXPECT_EQ(weights[0], weights[1]) << kind << ", " << clip_norm;
      Push(Gradient(0, 2, {2, -4, 1, 1}, {0, 0, 0}));
      const Answer still = Push(Gradient(1, 2, {2, -4, 1, 1}, {0, 0, 0}));
      const float* const got = (**still)->weights.data();
      EXPECT_EQ(std::vector<float>(got, got + 4), weights[1]) << kind;
    }
  }
}

TEST_F(ParameterGroupsTest, RatesOfTheWrongNumberOrValueAreRefused) {
  CreateGroups({});
  const auto push = [this](Rates rates) {
    return (**Push(Gradient(0, 0, {1, 1, 1, 1}, std::move(rates)))).status();
  };
  EXPECT_THAT(
      push({0.5, 1}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "rank 0 sent 2 learning rates for step 1, wanted none or 3"));
  for (double bad : {-1.0, double{INFINITY}, double{NAN}}) {
    EXPECT_THAT(push({0.5, bad, 1}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "wanted finite rates of 0 or more"));
  }
  EXPECT_EQ(shard_->counters().contributions, 0u);
}

TEST_F(ParameterGroupsTest, RanksThatDisagreeAreNamedWithTheirRates) {
  CreateGroups({});
  const Answer first = Push(Gradient(1, 0, {2, 2, 2, 2}, {0.1, 1, 1}));
  EXPECT_THAT(
      **Push(Gradient(0, 0, {2, 2, 2, 2}, {0.2, 1, 1})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "rank 0 sent learning rates 0.20000000000000001, 1, 1 for step "
               "1, wanted learning rates 0.10000000000000001, 1, 1 as rank 1 "
               "has sent"));
  EXPECT_THAT(**Push(Gradient(0, 0, {2, 2, 2, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 0 sent no learning rates for step 1"));
  EXPECT_FALSE(first->has_value());
  ExpectWeights(Push(Gradient(0, 0, {2, 2, 2, 2}, {0.1, 1, 1})),
                {-0.2f, -2, 0, 0});
}

TEST_F(ParameterGroupsTest, SeparateContributionsHaveTheirOwnRates) {
  CreateGroups({}, 0, std::make_unique<Asynchronous>());
  ExpectWeights(Push(Gradient(0, 0, {2, 2, 2, 2}, {1, 1, 1})), {-2, -2, 0, 0});
  ExpectWeights(Push(Gradient(1, 0, {2, 2, 2, 2}, {2, 0, 1})), {-6, -2, 0, 0});
  ExpectWeights(Push(Gradient(0, 1, {2, 2, 2, 2})), {-8, -3, 0, 0});
}

// The outer optimizer of local_sgd has its own rate.
TEST_F(ParameterGroupsTest, RoundsOfLocalSgdTakeNoRates) {
  CreateGroups({.takes_running_averages = true});
  EXPECT_THAT(
      **Push(Gradient(0, 0, {2, 2, 2, 2}, {1, 1, 1})),
      StatusIs(absl::StatusCode::kInvalidArgument, "wanted none: with local_"));
}

class SkippedStepTest : public ParameterShardTest {
 protected:
  void SetUp() override { CreateWith({}); }
  void CreateWith(const OptimizerOptions& optimizer) {
    ParameterShard::Options options;
    options.num_workers = 2;
    options.training.optimizer = optimizer;
    options.training.policy = std::make_unique<BulkSynchronous>();
    options.training.nonfinite = NonFiniteAction::kSkip;
    options.training.checkpoint_every_steps = 4;
    options.callbacks.on_checkpoint = [this](const BlockCut& cut) {
      skipped_steps_ = cut.skipped_steps;
      weights_.assign(cut.weights.data(), cut.weights.data() + 4);
      state_.clear();
      for (const float* state : cut.state) {
        state_.emplace_back(state, state + 4);
      }
    };
    Create(std::move(options));
    Initialize();
  }
  void Restore() {
    const auto load = [this](const Block&, float* weights,
                             const std::vector<float*>& state) {
      std::copy_n(weights_.data(), 4, weights);
      for (size_t i = 0; i < state_.size(); ++i) {
        std::copy_n(state_[i].data(), 4, state[i]);
      }
      return absl::OkStatus();
    };
    TRIBUTARY_ASSERT_OK(shard_->Restore(4, skipped_steps_, load));
  }
  float WeightAfter(int64_t step) {
    Push(Make(0, step, 1.0f));
    return First(Push(Make(1, step, 1.0f)));
  }
  // Whether both ranks hear that a step with rank 1's `value` was skipped.
  bool Skips(int64_t step, float value) {
    const Answer first = Push(Make(0, step, 1.0f));
    const Answer second = Push(Make(1, step, value));
    EXPECT_EQ((**first)->skipped, (**second)->skipped);
    return (**second)->skipped;
  }

  // The values in the last checkpoint.
  int64_t skipped_steps_ = 0;
  std::vector<float> weights_;
  std::vector<std::vector<float>> state_;
};

// As with PyTorch's GradScaler, whose optimizer is not called for such a step.
// The sizes of the other steps depend on the number of the update.
TEST_F(SkippedStepTest, TheOptimizerDoesNotCountIt) {
  for (const char* kind : {"adam", "adamw", "lamb", "adafactor", "adagrad"}) {
    SCOPED_TRACE(kind);
    OptimizerOptions optimizer;
    optimizer.kind = kind;
    optimizer.learning_rate = 0.01;
    optimizer.learning_rate_decay = 1;
    CreateWith(optimizer);
    const float first = WeightAfter(0);
    const float second = WeightAfter(1);
    const float third = WeightAfter(2);

    CreateWith(optimizer);
    EXPECT_TRUE(Skips(0, kNan));
    EXPECT_TRUE(Skips(1, kNan));
    EXPECT_EQ(WeightAfter(2), first);
    EXPECT_TRUE(Skips(3, kNan));  // a checkpoint follows
    EXPECT_EQ(skipped_steps_, 3);
    EXPECT_EQ(WeightAfter(4), second);
    EXPECT_EQ(WeightAfter(5), third);

    CreateWith(optimizer);
    Restore();
    EXPECT_EQ(WeightAfter(4), second);
    EXPECT_EQ(WeightAfter(5), third);
  }
}

TEST_F(SkippedStepTest, TheAnswersSayWhetherTheirStepChangedNothing) {
  EXPECT_FALSE(Skips(0, 1));
  EXPECT_TRUE(Skips(1, kNan));
  EXPECT_TRUE((**Push(Make(0, 1, 1.0f)))->skipped) << "repeated";
  EXPECT_FALSE(Skips(2, 1));
  EXPECT_FALSE((**Push(Make(0, 2, 1.0f)))->skipped) << "repeated";
  EXPECT_TRUE(Skips(3, kNan));
}

// Only the answer to the step's own push says that the step was skipped.
TEST_F(SkippedStepTest, APullOfTheSameWeightsDoesNotSayIt) {
  EXPECT_TRUE(Skips(0, kNan));
  bool skipped = true;
  shard_->Pull(0, 1, 1000, [&](auto weights) { skipped = weights->skipped; });
  EXPECT_FALSE(skipped);
}

}  // namespace
}  // namespace tributary
