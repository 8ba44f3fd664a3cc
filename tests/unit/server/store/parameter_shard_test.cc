// SPDX-License-Identifier: Apache-2.0
#include "server/store/parameter_shard.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::StatusIs;

TEST_F(ParameterShardTest, AStepIsAppliedWithTheLastContribution) {
  Initialize();
  const Answer first = Push(Make(0, 0, 2.0f));
  EXPECT_FALSE(first->has_value());
  const Answer second = Push(Make(1, 0, 4.0f));
  ASSERT_TRUE(first->has_value() && (*first)->ok());
  EXPECT_EQ(First(first), -3.0f);
  EXPECT_EQ((*second)->value().version, 1);
  EXPECT_EQ((*second)->value().crc32c,
            Floats({-3, -3, -3, -3}).ScanFloats().crc32c);
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
  EXPECT_THAT(shard_->Initialize(0, other.ScanFloats().crc32c, other),
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
  TRIBUTARY_EXPECT_OK(shard_->Initialize(0, start.ScanFloats().crc32c, start));
  const Answer answer = Push(Make(0, 0, 0.5f));
  EXPECT_NEAR(First(answer), 3.0f - 2.5f, 1e-5);
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
  options.training.kept_versions = 1;
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
  EXPECT_EQ((**previous)->crc32c, Floats({-1, -1, -1, -1}).ScanFloats().crc32c);
  EXPECT_THAT(**pull(0), StatusIs(absl::StatusCode::kOutOfRange,
                                  "version 0 of shard 0, block 0 is gone"));
  EXPECT_FALSE(pull(3)->has_value());
  EXPECT_EQ(shard_->ReadClock(0, /*incarnation=*/9)->steps, 2);
}

TEST_F(ParameterShardTest, TheLastStepIsCutOnDemand) {
  std::vector<float> weights;
  int64_t steps = 0;
  int cuts = 0;
  ParameterShard::Options options;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.callbacks.on_checkpoint = [&](const BlockCut& cut) {
    ++cuts;
    steps = cut.steps;
    weights.assign(cut.weights.data(), cut.weights.data() + 4);
  };
  Create(std::move(options));
  Initialize();
  Push(Make(0, 0, 1.0f));
  const float last = First(Push(Make(0, 1, 1.0f)));
  EXPECT_EQ(steps, 0) << "no step is due by itself";
  EXPECT_THAT(shard_->CutAll(3),
              StatusIs(absl::StatusCode::kUnavailable,
                       "block 0 has version 2; wanted that after step 3"));
  EXPECT_THAT(shard_->CutAll(1),
              StatusIs(absl::StatusCode::kFailedPrecondition, "version 2"));
  EXPECT_EQ(steps, 0);
  TRIBUTARY_EXPECT_OK(shard_->CutAll(2));
  EXPECT_EQ(steps, 2);
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_EQ(weights[0], last);
  TRIBUTARY_EXPECT_OK(shard_->CutAll(2));  // also at the end of the job
  EXPECT_EQ(cuts, 1);
}

// With more servers than blocks a shard may be empty, also with checkpoints.
TEST_F(ParameterShardTest, WithoutBlocksThereIsNothingToCut) {
  const PartitionPlan plan =
      *PartitionPlan::Create(parameters_, /*num_shards=*/2, 1 << 16);
  ParameterShard::Options options;
  options.plan = &plan;
  options.shard = plan.blocks(0).empty() ? 0 : 1;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.ops = ops_.get();
  ASSERT_TRUE(plan.blocks(options.shard).empty());
  TRIBUTARY_EXPECT_OK(ParameterShard(std::move(options)).CutAll(3));
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
    made.callbacks.on_checkpoint = [&](const BlockCut& cut) {
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
      2, /*skipped_steps=*/0,
      [&](const Block&, float* w, const std::vector<float*>& s) {
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

// Rates 1 and gradients 1: the weights after step s are -s.
TEST_F(ParameterShardTest, WithADelayACheckpointHasTheWeightsBefore) {
  std::vector<std::vector<float>> saved;
  const auto options = [&] {
    ParameterShard::Options options;
    options.num_workers = 1;
    options.training.policy = std::make_unique<BulkSynchronous>();
    options.training.kept_versions = 2;
    options.training.saves_previous = true;
    options.callbacks.on_checkpoint = [&saved](const BlockCut& cut) {
      saved = {{cut.weights.data(), cut.weights.data() + 4}};
      for (const float* s : cut.state) saved.push_back({s, s + 4});
    };
    return options;
  };
  const auto exactly = [this](int64_t version) -> absl::StatusOr<float> {
    absl::StatusOr<WeightsSnapshot> got = absl::UnknownError("no answer");
    shard_->PullExact(0, version, 1000,
                      [&](auto weights) { got = std::move(weights); });
    if (!got.ok()) return got.status();
    return got->weights.data()[0];
  };
  Create(options());
  Initialize();
  for (int64_t step = 0; step < 3; ++step) Push(Make(0, step, 1.0f));
  for (int version : {3, 2, 1}) EXPECT_EQ(*exactly(version), -version);
  EXPECT_EQ(exactly(0).status().code(), absl::StatusCode::kOutOfRange);
  TRIBUTARY_ASSERT_OK(shard_->CutAll(3));
  EXPECT_THAT(saved, ElementsAre(Each(-3.0f), Each(-2.0f)));

  Create(options());
  TRIBUTARY_ASSERT_OK(shard_->Restore(
      3, /*skipped_steps=*/0,
      [&](const Block&, float* w, const std::vector<float*>& s) {
        std::copy(saved[0].begin(), saved[0].end(), w);
        std::copy(saved[1].begin(), saved[1].end(), s.at(0));
        return absl::OkStatus();
      }));
  EXPECT_EQ(*exactly(3), -3);
  EXPECT_EQ(*exactly(2), -2);
  EXPECT_FALSE(exactly(1).ok());
  Push(Make(0, 3, 1.0f));
  for (int version : {4, 3, 2}) EXPECT_EQ(*exactly(version), -version);
}

}  // namespace
}  // namespace tributary
