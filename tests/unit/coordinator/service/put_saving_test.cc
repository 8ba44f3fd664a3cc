// SPDX-License-Identifier: Apache-2.0
// The final weights that ranks without servers send, and a coordinator that
// takes over meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/coordinator/service/job_saving_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
// ---- weights that the ranks have put

class PutSavingTest : public JobSavingTest {
 protected:
  PutSavingTest() : JobSavingTest(/*servers=*/false) {}

  void FinishAll() {
    for (const v1::RegisterResponse& worker : workers_) {
      ASSERT_TRUE(control_->calls().Heartbeat(Finished(worker)).ok());
    }
  }
};

TEST_F(PutSavingTest, WeightsThatThisOneHasAreNotAskedFor) {
  Begin();
  ASSERT_TRUE(PutWeights(kFewSteps).ok());
  FinishAll();
  EXPECT_FALSE(control_->calls()
                   .Heartbeat(Finished(workers_[0]))
                   .value()
                   .wants_weights());
  EXPECT_TRUE(control_->output().RankWeights(kFewSteps).ok());
}

TEST_F(PutSavingTest, ADamagedPieceIsRefusedSoThatItIsSentAgain) {
  Begin();
  for (const auto& damage :
       std::vector<std::function<void(v1::PutWeightsRequest*)>>{
           [](auto* piece) { piece->set_rank(piece->rank() ^ 1); },
           [](auto* piece) {
             piece->set_incarnation(piece->incarnation() ^ 4);
           },
           [](auto* piece) { piece->set_step(piece->step() ^ 8); },
           [](auto* piece) { (*piece->mutable_payload())[5] ^= 1; }}) {
    EXPECT_TRUE(absl::IsDataLoss(PutWeights(kFewSteps, damage)));
  }
  ASSERT_TRUE(PutWeights(kFewSteps).ok());
  FinishAll();
  EXPECT_TRUE(control_->output().RankWeights(kFewSteps).ok());
}

TEST_F(PutSavingTest, ASuccessorAsksTheRanksAndNamesThem) {
  Begin();
  ASSERT_TRUE(PutWeights(kFewSteps).ok());
  FinishAll();
  TakeOver();
  FinishAll();
  EXPECT_TRUE(control_->calls()
                  .Heartbeat(Finished(workers_[0]))
                  .value()
                  .wants_weights());
  EXPECT_EQ(control_->Snapshot().message(),
            "waiting for the weights after step 3 from worker 0");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      control_->output().RankWeights(kFewSteps).status()));
  ASSERT_TRUE(PutWeights(kFewSteps).ok());
  EXPECT_FALSE(control_->calls()
                   .Heartbeat(Finished(workers_[0]))
                   .value()
                   .wants_weights());
  EXPECT_TRUE(control_->output().RankWeights(kFewSteps).ok());
}

// No process has the weights after the last step any more.
TEST_F(PutSavingTest, ARankThatIsGoneWithTheWeightsIsLost) {
  Begin();
  ASSERT_TRUE(PutWeights(kFewSteps).ok());
  FinishAll();
  TakeOver();
  FinishAll();
  for (int i = 0; i < 5; ++i) {
    Tick(3);
    ASSERT_TRUE(control_->calls().Heartbeat(Finished(workers_[1])).ok());
  }
  const v1::JobStatusResponse status = control_->Snapshot();
  EXPECT_EQ(status.workers_lost(), 1u);
  EXPECT_EQ(status.phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_THAT(status.message(), HasSubstr("in the place of worker 0"));
  workers_[0] = Join(v1::ROLE_WORKER, "another").value();
  EXPECT_EQ(control_->calls().GetPlan({}).value().epoch(), 2u);
}

}  // namespace
}  // namespace tributary
