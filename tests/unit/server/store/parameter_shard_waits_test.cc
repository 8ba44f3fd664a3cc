// SPDX-License-Identifier: Apache-2.0
// The waits of calls to a shard, and the answers that they get.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "kernels/ops.h"
#include "server/store/parameter_shard.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

using Answer = std::shared_ptr<std::optional<absl::StatusOr<WeightsSnapshot>>>;

// Shard 0 of a plan with one block of four weights a shard; SGD, rate 1.
class ParameterShardWaitsTest : public ::testing::Test {
 protected:
  void Create(int shards, int workers, std::unique_ptr<SyncPolicy> policy,
              double clip_norm = 0) {
    ParameterSpecs parameters;
    for (int s = 0; s < shards; ++s) {
      parameters.push_back({std::string(1, static_cast<char>('a' + s)), {4}});
    }
    plan_ = std::make_unique<PartitionPlan>(
        *PartitionPlan::Create(parameters, shards, 1 << 16));
    OptimizerOptions sgd;
    sgd.learning_rate = 1;
    shard_ = std::make_unique<ParameterShard>(ParameterShard::Options{
        .plan = plan_.get(),
        .num_workers = workers,
        .training = {.optimizer = sgd,
                     .learning_rate = [](int64_t) { return 1.0; },
                     .clip_norm = clip_norm,
                     .policy = std::move(policy),
                     .kept_versions = 1},
        .ops = ops_.get(),
        .callbacks = {.fetch_statistics = [](int64_t, StatisticsKind) {}},
    });
    const Payload zeros = Floats({0, 0, 0, 0});
    TRIBUTARY_EXPECT_OK(
        shard_->Initialize(0, zeros.ScanFloats().crc32c, zeros));
  }

  static Payload Floats(const std::vector<float>& values) {
    return Payload::Copy(values.data(), values.size() * sizeof(float));
  }
  static WeightsDone Into(const Answer& answer) {
    return [answer](absl::StatusOr<WeightsSnapshot> weights) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(weights);
    };
  }
  static Answer NewAnswer() { return std::make_shared<Answer::element_type>(); }

  Answer Push(uint32_t rank, int64_t step, uint64_t incarnation = 1,
              float value = 1) {
    Contribution c;
    c.rank = rank;
    c.incarnation = incarnation;
    c.step = step;
    c.samples = 1;
    c.payload = Floats({value, value, value, value});
    c.crc32c = c.payload.ScanFloats().crc32c;
    const Answer answer = NewAnswer();
    shard_->PushPull(0, std::move(c), /*deadline_micros=*/1000, Into(answer));
    return answer;
  }
  Answer PullFinished(int64_t steps) {
    const Answer answer = NewAnswer();
    shard_->PullFinished(0, steps, /*deadline_micros=*/1000, Into(answer));
    return answer;
  }

  const std::unique_ptr<Ops> ops_ = CreateCpuOps();
  std::unique_ptr<PartitionPlan> plan_;
  std::unique_ptr<ParameterShard> shard_;
};

// The worker before the replacement would have waited as well.
TEST_F(ParameterShardWaitsTest, AReplacementReadsNoStalerWeightsThanItsPast) {
  Create(1, 2, std::make_unique<StaleSynchronous>(/*staleness=*/0));
  Push(0, 0);
  const Answer answer = PullFinished(1);
  EXPECT_FALSE(answer->has_value()) << "rank 1 has not come";
  Push(1, 0);
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->value().version, 2);
}

TEST_F(ParameterShardWaitsTest, AReplacementWaitsWhereACheckpointIsDue) {
  Create(1, 2, std::make_unique<Asynchronous>([](int64_t finished) {
           return finished % 2 == 0;
         }));
  Push(0, 0);
  EXPECT_TRUE(PullFinished(1)->has_value());
  Push(0, 1);
  const Answer answer = PullFinished(2);
  EXPECT_FALSE(answer->has_value());
  Push(1, 0);
  Push(1, 1);
  EXPECT_TRUE(answer->has_value());
}

// The answer that the new holder has got must stay true.
TEST_F(ParameterShardWaitsTest, WhoReadsTheClockFencesWhoCameBefore) {
  Create(1, 2, std::make_unique<BulkSynchronous>());
  Push(0, 0, /*incarnation=*/3);
  const auto clock = shard_->ReadClock(0, /*incarnation=*/5);
  TRIBUTARY_ASSERT_OK(clock);
  EXPECT_EQ(clock->steps, 1);
  EXPECT_EQ(clock->begun, 1);
  const Answer answer = Push(0, 0, /*incarnation=*/3);
  ASSERT_TRUE(answer->has_value());
  EXPECT_THAT(**answer,
              StatusIs(absl::StatusCode::kFailedPrecondition, "fenced"));
  EXPECT_THAT(shard_->ReadClock(0, 4),
              StatusIs(absl::StatusCode::kFailedPrecondition, "fenced"));
}

TEST_F(ParameterShardWaitsTest, ALateRepetitionOfTheFirstWeightsIsAnswered) {
  Create(1, 1, std::make_unique<BulkSynchronous>());
  Push(0, 0);
  const Payload zeros = Floats({0, 0, 0, 0});
  TRIBUTARY_EXPECT_OK(shard_->Initialize(0, zeros.ScanFloats().crc32c, zeros));
  const Payload others = Floats({0, 0, 0, 1});
  EXPECT_THAT(
      shard_->Initialize(0, others.ScanFloats().crc32c, others),
      StatusIs(absl::StatusCode::kAlreadyExists, "other weights, of version "));
}

// Everybody has come; the step waits for the other server.
TEST_F(ParameterShardWaitsTest, AWaitForNormsNamesTheShardThatOwesThem) {
  Create(2, 1, std::make_unique<BulkSynchronous>(), /*clip_norm=*/1);
  const Answer answer = Push(0, 0);
  shard_->ExpireWaiters(/*now_micros=*/2000);
  ASSERT_TRUE(answer->has_value());
  EXPECT_THAT(**answer,
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "step 1 of shard 0, block 0 waits for the norms of "
                       "shard 1"));
}

}  // namespace
}  // namespace tributary
