#include "server/store/parameter_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "server/store/rejection.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

// One shard with one block of four weights, plain SGD with rate 1, so that a
// step subtracts the mean gradient.
class ParameterShardTest : public ::testing::Test {
 protected:
  ParameterShardTest() : ops_(CreateCpuOps()) { Create(2, {}); }

  void Create(int workers, OptimizerOptions optimizer, double clip_norm = 0) {
    ParameterShard::Options options;
    options.num_workers = workers;
    options.training.optimizer = optimizer;
    options.training.clip_norm = clip_norm;
    options.training.policy = std::make_unique<BulkSynchronous>();
    Create(std::move(options));
  }

  void Create(ParameterShard::Options options) {
    plan_ = std::make_unique<PartitionPlan>(
        *PartitionPlan::Create(parameters_, 1, 1 << 16));
    options.plan = plan_.get();
    options.training.optimizer.learning_rate = 1;
    options.training.learning_rate = [](int64_t) { return 1.0; };
    options.ops = ops_.get();
    shard_ = std::make_unique<ParameterShard>(std::move(options));
  }

  void Initialize() {
    TRIBUTARY_EXPECT_OK(shard_->Initialize(0, Zeros().Crc32c(), Zeros()));
  }

  static Payload Floats(const std::vector<float>& values) {
    return Payload::Copy(values.data(), values.size() * sizeof(float));
  }
  static Payload Zeros() { return Floats({0, 0, 0, 0}); }

  static Contribution Make(uint32_t rank, int64_t step, float value,
                           uint64_t samples = 1) {
    Contribution c;
    c.rank = rank;
    c.incarnation = 1;
    c.step = step;
    c.samples = samples;
    if (samples > 0) c.payload = Floats({value, value, value, value});
    c.crc32c = c.payload.Crc32c();
    return c;
  }

  // Where an answer lands; empty: not yet.
  using Answer =
      std::shared_ptr<std::optional<absl::StatusOr<WeightsSnapshot>>>;
  Answer Push(Contribution c, int64_t deadline = 1000) {
    auto answer = std::make_shared<Answer::element_type>();
    shard_->PushPull(0, std::move(c), deadline, [answer](auto weights) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(weights);
    });
    return answer;
  }
  static float First(const Answer& answer) {
    return (**answer)->weights.data()[0];
  }

  const std::unique_ptr<Ops> ops_;
  ParameterSpecs parameters_ = {{"w", {4}}};
  std::unique_ptr<PartitionPlan> plan_;
  std::unique_ptr<ParameterShard> shard_;
};

TEST_F(ParameterShardTest, AStepIsAppliedWithTheLastContribution) {
  Initialize();
  const Answer first = Push(Make(0, 0, 2.0f));
  EXPECT_FALSE(first->has_value());
  const Answer second = Push(Make(1, 0, 4.0f));
  ASSERT_TRUE(first->has_value() && (*first)->ok());
  EXPECT_EQ(First(first), -3.0f);
  EXPECT_EQ((*second)->value().version, 1);
  EXPECT_EQ((*second)->value().crc32c, Floats({-3, -3, -3, -3}).Crc32c());
}

TEST_F(ParameterShardTest, EveryRepetitionIsAnsweredAndNoneCounts) {
  Initialize();
  const Answer first = Push(Make(0, 0, 2.0f));
  const Answer again = Push(Make(0, 0, 2.0f));
  Push(Make(1, 0, 4.0f));
  EXPECT_EQ(First(first), -3.0f);
  EXPECT_EQ(First(again), -3.0f);
  EXPECT_EQ(First(Push(Make(1, 0, 4.0f))), -3.0f);
  EXPECT_EQ(shard_->counters().duplicates, 2u);
  EXPECT_EQ(shard_->counters().contributions, 2u);
}

TEST_F(ParameterShardTest, CallsThatWaitAreBounded) {
  Initialize();
  const Answer first = Push(Make(0, 0, 2.0f));
  std::vector<Answer> again;
  // 16 + 4 for each of two workers, of which one waits.
  for (int i = 0; i < 23; ++i) again.push_back(Push(Make(0, 0, 2.0f)));
  EXPECT_EQ(shard_->waiting_calls(), 24u);
  const Answer push = Push(Make(0, 0, 2.0f));
  EXPECT_THAT((**push).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "24 calls wait for block 0 of shard 0, no more may"));
  std::optional<absl::Status> pull;
  shard_->Pull(0, 1, 1000, [&](auto weights) { pull = weights.status(); });
  EXPECT_TRUE(absl::IsResourceExhausted(*pull));
  std::optional<absl::Status> now;
  shard_->Pull(0, 0, 1000, [&](auto weights) { now = weights.status(); });
  EXPECT_TRUE(now->ok()) << "what can be answered at once needs no place";

  // The contribution of a call that may not wait counts all the same.
  const Answer last = Push(Make(1, 0, 4.0f));
  EXPECT_TRUE(absl::IsResourceExhausted((**last).status()));
  EXPECT_EQ(First(first), -3.0f);
  EXPECT_EQ(First(again.back()), -3.0f);
  EXPECT_EQ(First(Push(Make(1, 0, 4.0f))), -3.0f);
}

TEST_F(ParameterShardTest, CallsThatWaitForStatisticsAreBounded) {
  absl::Status status;
  size_t answered = 0;
  const auto ask = [&](int64_t step) {
    shard_->ReadStatistics(step, StatisticsKind::kGradientNorm, 1000,
                           [&](auto values) {
                             ++answered;
                             status = values.status();
                           });
  };
  for (size_t i = 0; i < StatisticsCalls::kMaxWaiters; ++i) ask(1);
  EXPECT_EQ(answered, 0u);
  ask(1);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "1024 calls wait for statistics of shard 0"));
  shard_->ExpireWaiters(2000);
  EXPECT_EQ(answered, 1025u);
  ask(INT64_MAX);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               "statistics of step 9223372036854775807"));
}

// One more than the largest number overflows: the sanitizer's word.
TEST_F(ParameterShardTest, StepsBeyondAllJobsAreRefused) {
  Initialize();
  for (int64_t step : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    const Answer answer = Push(Make(0, step, 1.0f));
    EXPECT_THAT((**answer).status(),
                StatusIs(absl::StatusCode::kOutOfRange,
                         "wanted 0 or more and below 9007199254740992"));
  }
  Contribution c = Make(0, 0, 1.0f);
  c.base_version = INT64_MIN;
  EXPECT_THAT((**Push(c)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "base_version -9223372036854775808 of rank 0"));
}

TEST_F(ParameterShardTest, OtherBytesForTheSameStepAreRefused) {
  Initialize();
  Push(Make(0, 0, 2.0f));
  EXPECT_THAT(**Push(Make(0, 0, 3.0f)),
              StatusIs(absl::StatusCode::kAborted, "not deterministic"));
  EXPECT_EQ(shard_->counters().conflicts, 1u);
}

TEST_F(ParameterShardTest, WrongInputIsRefusedAndChangesNothing) {
  EXPECT_THAT(
      **Push(Make(0, 0, 1.0f)),
      StatusIs(absl::StatusCode::kFailedPrecondition, "not initialized"));
  Initialize();
  EXPECT_THAT(**Push(Make(7, 0, 1.0f)),
              StatusIs(absl::StatusCode::kInvalidArgument, "rank 7"));
  Contribution shorter = Make(0, 0, 1.0f);
  shorter.payload = Floats({1});
  shorter.crc32c = shorter.payload.Crc32c();
  EXPECT_THAT(**Push(shorter), StatusIs(absl::StatusCode::kInvalidArgument,
                                        "4 bytes for block 0"));
  Contribution damaged = Make(0, 0, 1.0f);
  damaged.crc32c ^= 1;
  EXPECT_THAT(**Push(damaged),
              StatusIs(absl::StatusCode::kDataLoss, "damaged"));
  EXPECT_THAT(**Push(Make(0, 5, 1.0f)),
              StatusIs(absl::StatusCode::kOutOfRange, "open step is 1"));
  EXPECT_EQ(shard_->counters().contributions, 0u);
  EXPECT_EQ(shard_->counters().rejected, 5u);
}

TEST_F(ParameterShardTest, ARefusalCarriesItsReason) {
  const auto reason = [this](Contribution c) {
    return RejectionOf((**Push(std::move(c))).status());
  };
  EXPECT_EQ(reason(Make(0, 0, 1.0f)), Rejection::kUninitialized);
  Initialize();
  EXPECT_EQ(reason(Make(7, 0, 1.0f)), Rejection::kRank);
  Contribution shorter = Make(0, 0, 1.0f);
  shorter.payload = Floats({1});
  shorter.crc32c = shorter.payload.Crc32c();
  EXPECT_EQ(reason(shorter), Rejection::kShape);
  Contribution damaged = Make(0, 0, 1.0f);
  damaged.crc32c ^= 1;
  EXPECT_EQ(reason(damaged), Rejection::kChecksum);
  EXPECT_EQ(reason(Make(0, 5, 1.0f)), Rejection::kStep);
  EXPECT_EQ(reason(Make(0, 0, NAN)), Rejection::kNonfinite);
  Contribution newer = Make(0, 0, 2.0f);
  newer.incarnation = 2;
  Push(newer);
  EXPECT_EQ(reason(Make(0, 0, 2.0f)), Rejection::kFenced);
  // A conflict has a count of its own, and a wait that was too long is none.
  Contribution other = Make(0, 0, 3.0f);
  other.incarnation = 2;
  EXPECT_EQ(reason(other), std::nullopt);
  const Payload ones = Floats({1, 1, 1, 1});
  EXPECT_EQ(RejectionOf(shard_->Initialize(0, ones.Crc32c(), ones)),
            Rejection::kInitialized);
}

TEST_F(ParameterShardTest, OnlyWhoKeepsSomebodyFromGoingOnIsWaitedFor) {
  ParameterShard::Options options;
  options.num_workers = 3;
  options.training.policy = std::make_unique<StaleSynchronous>(/*staleness=*/1);
  Create(std::move(options));
  Initialize();
  Push(Make(0, 0, 1.0f));
  EXPECT_TRUE(shard_->MissingRanks().empty());  // ahead, and may be
  const Answer waits = Push(Make(0, 1, 1.0f));
  EXPECT_FALSE(waits->has_value());
  EXPECT_EQ(shard_->MissingRanks(), (std::vector<int>{1, 2}));
  Push(Make(1, 0, 1.0f));
  EXPECT_EQ(shard_->MissingRanks(), std::vector<int>{2});
  Push(Make(2, 0, 1.0f));
  EXPECT_TRUE(waits->has_value());
  EXPECT_TRUE(shard_->MissingRanks().empty());
}

TEST_F(ParameterShardTest, AWorkerWithoutSamplesWaitsAndDoesNotCount) {
  Initialize();
  const Answer idle = Push(Make(1, 0, 0, /*samples=*/0));
  EXPECT_FALSE(idle->has_value());
  Push(Make(0, 0, 6.0f, 3));
  EXPECT_EQ(First(idle), -6.0f);
}

TEST_F(ParameterShardTest, AnExpiredCallSaysWhomItWaitedFor) {
  Initialize();
  const Answer early = Push(Make(1, 0, 1.0f), /*deadline=*/100);
  const Answer late = Push(Make(1, 0, 1.0f), /*deadline=*/300);
  shard_->ExpireWaiters(/*now_micros=*/200);
  ASSERT_TRUE(early->has_value());
  EXPECT_THAT(**early, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                "step 1 of shard 0, block 0 waits for rank 0"));
  EXPECT_FALSE(late->has_value());
  Push(Make(0, 0, 1.0f));
  EXPECT_TRUE((*late)->ok());  // the contribution was held all the while
}

TEST_F(ParameterShardTest, WeightsOnTheirWayDoNotChangeUnderTheNextStep) {
  Create(1, {});
  Initialize();
  const Answer first = Push(Make(0, 0, 2.0f));
  const Answer second = Push(Make(0, 1, 3.0f));
  EXPECT_EQ(First(first), -2.0f);
  EXPECT_EQ(First(second), -5.0f);
}

TEST_F(ParameterShardTest, InitializationCountsOnce) {
  Initialize();
  Initialize();
  const Payload other = Floats({1, 2, 3, 4});
  EXPECT_THAT(shard_->Initialize(0, other.Crc32c(), other),
              StatusIs(absl::StatusCode::kAlreadyExists, "other weights"));
}

TEST_F(ParameterShardTest, APullWaitsForItsVersion) {
  Create(1, {});
  std::optional<int64_t> version;
  shard_->Pull(0, 1, 1000, [&](absl::StatusOr<WeightsSnapshot> weights) {
    version = weights->version;
  });
  Initialize();
  EXPECT_FALSE(version.has_value());
  Push(Make(0, 0, 2.0f));
  EXPECT_EQ(version, 1);
}

// |gradient| = sqrt(4 * 3^2) = 6, clipped to 3: PyTorch's coefficient is
// 3 / (6 + 1e-6).
TEST_F(ParameterShardTest, ClipsByTheNormOfTheAveragedGradient) {
  Create(2, {}, /*clip_norm=*/3);
  Initialize();
  Push(Make(0, 0, 2.0f));
  const Answer answer = Push(Make(1, 0, 4.0f));
  EXPECT_FLOAT_EQ(First(answer), -3.0f * static_cast<float>(3 / (6 + 1e-6)));
}

// Adam's first direction is g / (|g| + eps) = 1 for each of the weights, so
// |w| / |direction| is 5 / 2 with w = (3, 4, 0, 0) and the step is rate times
// that.
TEST_F(ParameterShardTest, LambScalesByTheNormsOfTheWholeTensor) {
  OptimizerOptions lamb;
  lamb.kind = "lamb";
  lamb.epsilon = 1e-12;
  Create(1, lamb);
  const Payload start = Floats({3, 4, 0, 0});
  TRIBUTARY_EXPECT_OK(shard_->Initialize(0, start.Crc32c(), start));
  const Answer answer = Push(Make(0, 0, 0.5f));
  EXPECT_NEAR(First(answer), 3.0f - 2.5f, 1e-5);
}

// ---- running averages

// Of two weights and the running average of two values, which moves by a
// quarter. Blocks begin with the last parameter, so the averages come first.
class RunningAverageTest : public ParameterShardTest {
 protected:
  RunningAverageTest() {
    parameters_ = {{"w", {2}},
                   {.name = "m", .shape = {2}, .running_momentum = 0.25}};
  }

  void InitializeAt(float average) {
    const Payload start = Floats({average, average, 0, 0});
    TRIBUTARY_EXPECT_OK(shard_->Initialize(0, start.Crc32c(), start));
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

// ---- policies

TEST_F(ParameterShardTest, SspAppliesAtOnceAndHoldsTheFastWorkerAtTheBound) {
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<StaleSynchronous>(/*staleness=*/1);
  Create(std::move(options));
  Initialize();
  const Answer first = Push(Make(0, 0, 1.0f));
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ(First(first), -1.0f);
  const Answer second = Push(Make(0, 1, 1.0f));
  EXPECT_FALSE(second->has_value()) << "two steps ahead of rank 1";
  const Answer slow = Push(Make(1, 0, 4.0f));
  EXPECT_EQ(First(slow), -6.0f);
  ASSERT_TRUE(second->has_value());
  EXPECT_EQ((**second)->version, 3);
  EXPECT_EQ(shard_->counters().max_staleness, 1);
  EXPECT_EQ(shard_->counters().staleness[0], 1u);  // rank 1's own
  EXPECT_EQ(shard_->counters().staleness[1], 2u);
}

TEST_F(ParameterShardTest, AStaleGradientCanCountLess) {
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<Asynchronous>();
  options.training.scale_by_staleness = true;
  Create(std::move(options));
  Initialize();
  Push(Make(0, 0, 1.0f));
  Push(Make(0, 1, 1.0f));  // of version 0: one update came between
  const Answer stale = Push(Make(1, 0, 4.0f));  // of version 0: two did
  EXPECT_EQ(First(stale), -4.0f);               // -1 - 1 - 4 / 2
}

TEST_F(ParameterShardTest, ALateGradientIsDroppedAndAnsweredWithTheWeights) {
  ParameterShard::Options options;
  options.num_workers = 3;
  options.training.policy =
      std::make_unique<BulkSynchronous>(/*backup_workers=*/1);
  Create(std::move(options));
  Initialize();
  Push(Make(0, 0, 2.0f));
  EXPECT_EQ(First(Push(Make(2, 0, 4.0f))), -3.0f);
  const Answer late = Push(Make(1, 0, 100.0f));
  EXPECT_EQ(First(late), -3.0f);
  EXPECT_EQ(shard_->counters().dropped, 1u);
}

// ---- replacement and restore

TEST_F(ParameterShardTest, TheVersionBeforeIsKeptForAReplacement) {
  ParameterShard::Options options;
  options.num_workers = 1;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.training.keep_previous = true;
  Create(std::move(options));
  Initialize();
  Push(Make(0, 0, 1.0f));
  Push(Make(0, 1, 1.0f));
  const auto pull = [this](int64_t version) {
    auto answer = std::make_shared<Answer::element_type>();
    shard_->PullExact(0, version, 1000,
                      [answer](auto weights) { *answer = std::move(weights); });
    return answer;
  };
  EXPECT_EQ(First(pull(2)), -2.0f);
  const Answer previous = pull(1);
  EXPECT_EQ(First(previous), -1.0f);
  EXPECT_EQ((**previous)->version, 1);
  EXPECT_EQ((**previous)->crc32c, Floats({-1, -1, -1, -1}).Crc32c());
  EXPECT_THAT(**pull(0), StatusIs(absl::StatusCode::kOutOfRange,
                                  "version 0 of shard 0, block 0 is gone"));
  EXPECT_FALSE(pull(3)->has_value());
  EXPECT_EQ(shard_->ReadClock(0, /*incarnation=*/9)->steps, 2);
}

TEST_F(ParameterShardTest, CutsHoldWeightsAndStateAndGoOnWhereTheyWereTaken) {
  OptimizerOptions momentum;
  momentum.momentum = 0.5;
  std::vector<float> weights, state;
  const auto options = [&] {
    ParameterShard::Options made;
    made.training.optimizer = momentum;
    made.training.policy = std::make_unique<BulkSynchronous>();
    made.training.checkpoint_every_steps = 2;
    made.on_checkpoint = [&](const BlockCut& cut) {
      EXPECT_EQ(cut.steps % 2, 0);
      if (cut.steps != 2) return;
      weights.assign(cut.weights.data(), cut.weights.data() + 4);
      state.assign(cut.state[0], cut.state[0] + 4);
    };
    return made;
  };
  Create(options());
  Initialize();
  for (int64_t step = 0; step < 5; ++step) Push(Make(0, step, 1.0f));
  const float undisturbed = First(Push(Make(0, 5, 1.0f)));
  ASSERT_EQ(weights.size(), 4u);

  Create(options());
  TRIBUTARY_EXPECT_OK(shard_->Restore(
      2, [&](const Block&, float* w, const std::vector<float*>& s) {
        std::copy(weights.begin(), weights.end(), w);
        std::copy(state.begin(), state.end(), s[0]);
        return absl::OkStatus();
      }));
  EXPECT_EQ(shard_->ReadClock(0, /*incarnation=*/1)->steps, 2);
  EXPECT_THAT(**Push(Make(0, 1, 1.0f)),
              StatusIs(absl::StatusCode::kOutOfRange, "open step is 3"));
  Answer last;
  for (int64_t step = 2; step < 6; ++step) last = Push(Make(0, step, 1.0f));
  EXPECT_EQ(First(last), undisturbed);
}

// ---- what is not finite

TEST_F(ParameterShardTest, AGradientThatIsNotFiniteIsRefusedByName) {
  ParameterShard::Options options;
  options.training.policy = std::make_unique<BulkSynchronous>();
  std::string fatal;
  options.on_fatal = [&fatal](const std::string& why) { fatal = why; };
  Create(std::move(options));
  Initialize();
  Contribution bad = Make(0, 0, 1.0f);
  bad.payload = Floats({1, 2, NAN, 4});
  bad.crc32c = bad.payload.Crc32c();
  EXPECT_THAT(**Push(bad),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 0 for step 1 is not finite in \"w\", element 2"));
  EXPECT_NE(fatal, "");
  EXPECT_EQ(shard_->counters().nonfinite, 1u);
  EXPECT_EQ(First(Push(Make(0, 0, 1.0f))), -1.0f) << "nothing was taken of it";
}

TEST_F(ParameterShardTest, AStepThatIsNotFiniteCanBeSkipped) {
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.training.nonfinite = NonFiniteAction::kSkip;
  Create(std::move(options));
  Initialize();
  Contribution bad = Make(0, 0, 1.0f);
  bad.payload = Floats({1, INFINITY, 3, 4});
  bad.crc32c = bad.payload.Crc32c();
  Push(bad);
  const Answer skipped = Push(Make(1, 0, 1.0f));
  EXPECT_EQ(First(skipped), 0.0f);
  EXPECT_EQ((**skipped)->version, 1);
  EXPECT_EQ(shard_->counters().skipped_blocks, 1u);
  Push(Make(0, 1, 1.0f));
  EXPECT_EQ(First(Push(Make(1, 1, 1.0f))), -1.0f);
}

}  // namespace
}  // namespace tributary
