// SPDX-License-Identifier: Apache-2.0
// How a job ends: by a failure, or once its final weights are saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "coordinator/service/read_weights.h"
#include "tests/unit/coordinator/service/coordinator_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
TEST_F(CoordinatorTest, FailureOfOneReachesAllWithItsSentence) {
  Start(1, 2);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker0 = Join(v1::ROLE_WORKER);
  absl::Notification told;
  Member::Options options;
  options.coordinator = coordinator_->address();
  options.role = v1::ROLE_WORKER;
  options.callbacks.on_end = [&](const absl::Status&) { told.Notify(); };
  auto worker1 = Member::Join(options).value();
  ASSERT_TRUE(worker0->DeclareModel(Model()).ok());
  ASSERT_TRUE(worker1->GetPlan(1, kSoon).ok());
  worker0->Fail(absl::DataLossError("train.gz ends too early"));
  EXPECT_TRUE(told.WaitForNotificationWithTimeout(kSoon));
  const absl::Status end = worker1->BeginStep(1);
  EXPECT_TRUE(absl::IsAborted(end)) << end;
  EXPECT_THAT(std::string(end.message()),
              HasSubstr("failed: train.gz ends too early"));
  EXPECT_TRUE(absl::IsAborted(server->WaitForPlanAfter(1, kSoon)));
}

TEST_F(CoordinatorTest, WeightsThatCannotBeSavedFailTheJob) {
  save_status_ = absl::DataLossError("input/output error");
  Start(1, 1);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker->DeclareModel(Model()).ok());
  store_[0].Serve(worker->GetPlan(1, kSoon).value());
  TrainToEnd(*worker);
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_FAILED);
  EXPECT_EQ(all.message,
            "the final weights could not be saved: input/output error");
  EXPECT_TRUE(absl::IsAborted(server->WaitForPlanAfter(1, kSoon)));
}

TEST_F(CoordinatorTest, OnAFullDiskTheWeightsWaitForRoomAndSaySo) {
  full_for_ = 3;
  Start(1, 1);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker->DeclareModel(Model()).ok());
  store_[0].Serve(worker->GetPlan(1, kSoon).value());
  TrainToEnd(*worker);
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_DONE) << all.message;
  EXPECT_EQ(full_for_, 0);
  EXPECT_THAT(all.notices,
              ::testing::Contains("waiting for room for the final weights: "
                                  "no space left on device"));
}

TEST_F(CoordinatorTest, WeightsThatFindNoRoomForTooLongFailTheJob) {
  full_for_ = 1'000'000;
  loss_timeout_ = absl::Seconds(1);
  Start(1, 1);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker->DeclareModel(Model()).ok());
  store_[0].Serve(worker->GetPlan(1, kSoon).value());
  TrainToEnd(*worker);
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_FAILED);
  EXPECT_THAT(all.message, HasSubstr("no space left on device"));
}

TEST_F(CoordinatorTest, WeightsThatComeDamagedAreAskedForAgain) {
  Start(1, 1);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker->DeclareModel(Model()).ok());
  store_[0].Serve(worker->GetPlan(1, kSoon).value(), /*bad_answers=*/3);
  TrainToEnd(*worker);
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_DONE) << all.message;
  EXPECT_EQ(store_[0].bad_answers_left(), 0);
  ASSERT_FALSE(weights_.tensors.empty());
  EXPECT_EQ(weights_.tensors[0][1], 1.0f);
}

TEST_F(CoordinatorTest, WeightsThatAlwaysComeDamagedAreNotTaken) {
  v1::Plan plan;
  plan.set_job_id(1);
  plan.set_num_workers(1);
  plan.set_bucket_bytes(1 << 16);
  plan.add_servers(store_[0].address());
  plan.add_parameters()->set_name("w");
  plan.mutable_parameters(0)->add_shape(5);
  store_[0].Serve(plan, /*bad_answers=*/1'000'000);
  const absl::Status status =
      ReadFinalWeights(plan, 7, {.timeout = absl::Milliseconds(300)}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("block 0 of server 0 at 127.0.0.1:"));
}

}  // namespace
}  // namespace tributary
