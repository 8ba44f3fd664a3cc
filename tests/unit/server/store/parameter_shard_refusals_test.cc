// SPDX-License-Identifier: Apache-2.0
// Calls that a shard refuses: wrong input, too many that wait, and gradients
// that are not finite.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status/cause.h"
#include "server/store/rejection.h"
#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;

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

// The sanitizer would report that the largest number plus one overflows.
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
  shorter.crc32c = shorter.payload.ScanFloats().crc32c;
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
  shorter.crc32c = shorter.payload.ScanFloats().crc32c;
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
  // A conflict has a count of its own; a wait that timed out is not a refusal.
  Contribution other = Make(0, 0, 3.0f);
  other.incarnation = 2;
  EXPECT_EQ(reason(other), std::nullopt);
  const Payload ones = Floats({1, 1, 1, 1});
  EXPECT_EQ(RejectionOf(shard_->Initialize(0, ones.ScanFloats().crc32c, ones)),
            Rejection::kInitialized);
}

TEST_F(ParameterShardTest, AGradientThatIsNotFiniteIsRefusedByName) {
  ParameterShard::Options options;
  options.training.policy = std::make_unique<BulkSynchronous>();
  absl::Status fatal;
  options.callbacks.on_fatal = [&fatal](const absl::Status& why) {
    fatal = why;
  };
  Create(std::move(options));
  Initialize();
  Contribution bad = Make(0, 0, 1.0f);
  bad.payload = Floats({1, 2, NAN, 4});
  bad.crc32c = bad.payload.ScanFloats().crc32c;
  EXPECT_THAT(**Push(bad),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 0 for step 1 is not finite in \"w\", element 2"));
  EXPECT_EQ(CauseOf(fatal), v1::CAUSE_DIVERGENCE);
  EXPECT_EQ(shard_->counters().nonfinite, 1u);
  EXPECT_EQ(First(Push(Make(0, 0, 1.0f))), -1.0f) << "nothing was taken of it";
}

// The worker that sent it ends; another one computes the step again.
TEST_F(ParameterShardTest, AGradientThatIsNotFiniteCanBeRefusedAlone) {
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.training.nonfinite = NonFiniteAction::kReject;
  absl::Status fatal;
  options.callbacks.on_fatal = [&fatal](const absl::Status& why) {
    fatal = why;
  };
  Create(std::move(options));
  Initialize();
  const Answer waiting = Push(Make(1, 0, 3.0f));
  Contribution bad = Make(0, 0, 1.0f);
  bad.payload = Floats({1, 2, 3, -INFINITY});
  bad.crc32c = bad.payload.ScanFloats().crc32c;
  EXPECT_THAT(**Push(bad),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 0 for step 1 is not finite in \"w\", element 3"));
  TRIBUTARY_EXPECT_OK(fatal);
  EXPECT_FALSE(waiting->has_value());
  EXPECT_EQ(shard_->counters().nonfinite, 1u);
  EXPECT_EQ(shard_->counters().rejected, 1u);
  EXPECT_EQ(shard_->counters().contributions, 1u);

  Contribution good = Make(0, 0, 1.0f);
  good.incarnation = 2;
  EXPECT_EQ(First(Push(good)), -2.0f);  // (1 + 3) / 2
  EXPECT_EQ(First(waiting), -2.0f);
  EXPECT_EQ(shard_->counters().contributions, 2u);
  EXPECT_EQ(shard_->counters().skipped_blocks, 0u);
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
  bad.crc32c = bad.payload.ScanFloats().crc32c;
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
