// SPDX-License-Identifier: Apache-2.0
#include "server/service/served_plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/plan/plan_codec.h"
#include "kernels/ops.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

// Shard 0 of two; two workers.
class ServedPlanTest : public ::testing::Test {
 protected:
  ServedPlanTest() : ops_(CreateCpuOps()) {
    plan_.set_job_id(77);
    plan_.set_epoch(4);
    plan_.set_num_workers(2);
    plan_.set_bucket_bytes(1 << 16);
    plan_.add_servers("a:1");
    plan_.add_servers("b:1");
    plan_.add_incarnations(4);
    plan_.add_incarnations(9);
    ToProto({{"w", {3}}, {"x", {3}}}, plan_.mutable_parameters());
    ShardSetup setup;
    setup.training.learning_rate = [](int64_t) { return 1.0; };
    setup.training.clip_norm = 1;
    setup.training.policy = std::make_unique<BulkSynchronous>();
    setup.ops = ops_.get();
    served_ = std::make_unique<ServedPlan>(
        plan_, MakePartitionPlan(plan_).value(), std::move(setup),
        [this](const v1::StatisticsRequest& request) {
          asked_.push_back(request);
        });
  }

  static v1::BlockAddress Address(uint64_t epoch, uint32_t shard) {
    v1::BlockAddress address;
    address.set_job_id(77);
    address.set_plan_epoch(epoch);
    address.set_shard(shard);
    return address;
  }
  absl::Status Check(const v1::BlockAddress& address) const {
    return ServedPlan::CheckAddress(served_.get(), address);
  }

  const std::unique_ptr<Ops> ops_;
  v1::Plan plan_;
  std::vector<v1::StatisticsRequest> asked_;  // of the peer
  std::unique_ptr<ServedPlan> served_;
};

TEST_F(ServedPlanTest, TakesTheCallsOfItsPlanAlone) {
  TRIBUTARY_EXPECT_OK(Check(Address(4, 0)));
  EXPECT_THAT(
      Check(Address(3, 0)),
      StatusIs(absl::StatusCode::kFailedPrecondition, "fetch the plan"));
  EXPECT_THAT(Check(Address(5, 0)), StatusIs(absl::StatusCode::kUnavailable,
                                             "waits for the new one"));
  EXPECT_THAT(Check(Address(4, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, "shard 1"));
  EXPECT_THAT(ServedPlan::CheckAddress(nullptr, Address(4, 0)),
              StatusIs(absl::StatusCode::kUnavailable, "no plan yet"));
}

TEST_F(ServedPlanTest, AnswersTheWaitingCallsWhenItsDeadlinePasses) {
  int answers = 0;
  served_->store().Pull(
      0, 0, /*deadline_micros=*/100, [&](const auto& weights) {
        ++answers;
        EXPECT_TRUE(absl::IsDeadlineExceeded(weights.status()));
      });
  served_->Tick(99);
  EXPECT_EQ(answers, 0);
  served_->Tick(100);
  EXPECT_EQ(answers, 1);
}

TEST_F(ServedPlanTest, AnswersTheWaitingCallsAtItsEnd) {
  int answers = 0;
  served_->store().Pull(0, 0, /*deadline_micros=*/INT64_MAX - 1,
                        [&](const auto&) { ++answers; });
  served_->End();
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(served_->store().waiting_calls(), 0u);
}

TEST_F(ServedPlanTest, RefusesTheClockOfARankThatThereIsNot) {
  v1::ClockRequest request;
  request.set_rank(2);
  EXPECT_THAT(served_->ReadClock(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted below 2"));
  EXPECT_THAT(served_->CheckHolder(Address(4, 0), 2, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted below 2"));
  request.set_rank(1);
  request.set_incarnation(9);
  TRIBUTARY_EXPECT_OK(served_->ReadClock(request));
}

TEST_F(ServedPlanTest, RefusesWhoeverLostARankBeforeIt) {
  v1::ClockRequest request;
  request.set_rank(1);
  request.set_incarnation(8);
  EXPECT_THAT(served_->ReadClock(request).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "fenced"));
  EXPECT_THAT(served_->CheckHolder(Address(4, 0), 1, 8),
              StatusIs(absl::StatusCode::kFailedPrecondition, "fenced"));
  TRIBUTARY_EXPECT_OK(served_->CheckHolder(Address(4, 0), 0, 8));
  // Whoever loses the rank later is refused once the next holder has called.
  request.set_incarnation(12);
  TRIBUTARY_EXPECT_OK(served_->CheckHolder(Address(4, 0), 1, 9));
  TRIBUTARY_EXPECT_OK(served_->ReadClock(request));
  EXPECT_THAT(served_->CheckHolder(Address(4, 0), 1, 9),
              StatusIs(absl::StatusCode::kFailedPrecondition, "fenced"));
}

TEST_F(ServedPlanTest, RefusesAnUnknownPhaseAtOnce) {
  v1::StatisticsRequest request;
  request.set_phase(v1::STATISTICS_PHASE_UNSPECIFIED);
  absl::Status answer;
  served_->ReadStatistics(request, INT64_MAX, [&](const auto& values) {
    answer = values.status();
  });
  EXPECT_THAT(answer,
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted 1 to 3"));
}

// Clipping needs the sums of every other shard that has elements.
TEST_F(ServedPlanTest, AsksTheOtherShardsForTheirSums) {
  ASSERT_EQ(served_->partition().num_shards(), 2);
  const Payload zeros = Payload::Copy(std::vector<float>(3).data(), 12);
  TRIBUTARY_EXPECT_OK(
      served_->store().Initialize(0, zeros.ScanFloats().crc32c, zeros));
  absl::StatusOr<WeightsSnapshot> answer = absl::UnknownError("none yet");
  for (uint32_t rank : {0u, 1u}) {
    Contribution contribution;
    contribution.rank = rank;
    contribution.incarnation = plan_.incarnations(static_cast<int>(rank));
    contribution.samples = 1;
    contribution.payload = zeros;
    contribution.crc32c = zeros.ScanFloats().crc32c;
    EXPECT_TRUE(asked_.empty());
    served_->store().PushPull(0, std::move(contribution), INT64_MAX - 1,
                              [&](auto weights) { answer = weights; });
  }
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].job_id(), 77u);
  EXPECT_EQ(asked_[0].plan_epoch(), 4u);
  EXPECT_EQ(asked_[0].shard(), 1u);
  EXPECT_EQ(asked_[0].step(), 0);
  EXPECT_EQ(asked_[0].phase(), v1::GRADIENT_NORM);
  EXPECT_EQ(asked_[0].wait_ms(), 10'000u);
  EXPECT_FALSE(answer.ok());
  TRIBUTARY_EXPECT_OK(served_->AddStatistics(asked_[0], {0}));
  TRIBUTARY_ASSERT_OK(answer);
  EXPECT_EQ(answer->version, 1);
}

}  // namespace
}  // namespace tributary
