// SPDX-License-Identifier: Apache-2.0
#include "server/service/serving_life.h"

#include <gtest/gtest.h>

#include "common/checkpoint/restore.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using Next = ServingLife::Next;
using testing::StatusIs;

v1::Plan PlanOf(uint64_t epoch) {
  v1::Plan plan;
  plan.set_epoch(epoch);
  return plan;
}

const absl::Status kInForce = absl::DeadlineExceededError("still in force");

class ServingLifeTest : public ::testing::Test {
 protected:
  void ServePlan(uint64_t epoch) {
    life_.OnPlan(PlanOf(epoch));
    ASSERT_EQ(life_.next(), Next::kStart);
    EXPECT_EQ(life_.plan().epoch(), epoch);
    life_.OnStarted(absl::OkStatus());
    ASSERT_EQ(life_.next(), Next::kServe);
  }

  ServingLife life_;
};

TEST_F(ServingLifeTest, ServesEachPlanUntilThereIsANewerOne) {
  EXPECT_EQ(life_.next(), Next::kGetPlan);
  EXPECT_EQ(life_.wanted_epoch(), 1u);
  ServePlan(1);
  life_.OnNews(kInForce);
  EXPECT_EQ(life_.next(), Next::kServe);
  life_.OnNews(absl::OkStatus());
  EXPECT_EQ(life_.next(), Next::kGetPlan);
  EXPECT_EQ(life_.wanted_epoch(), 2u);
  ServePlan(5);  // plans in between are skipped
  life_.OnNews(absl::OkStatus());
  EXPECT_EQ(life_.wanted_epoch(), 6u);
}

TEST_F(ServingLifeTest, EndsWithoutAnErrorWhenTheJobIsDone) {
  ServePlan(1);
  life_.OnNews(absl::CancelledError("the job is done"));
  EXPECT_EQ(life_.next(), Next::kEnd);
  TRIBUTARY_EXPECT_OK(life_.status());
}

TEST_F(ServingLifeTest, EndsWithTheErrorOfTheJob) {
  ServePlan(1);
  life_.OnNews(absl::AbortedError("worker 1 is lost"));
  EXPECT_EQ(life_.next(), Next::kEnd);
  EXPECT_THAT(life_.status(),
              StatusIs(absl::StatusCode::kAborted, "worker 1 is lost"));
}

TEST_F(ServingLifeTest, EndsWhenTheShardCannotContinue) {
  ServePlan(1);
  life_.OnNews(kInForce, absl::InternalError("a gradient is not finite"));
  EXPECT_EQ(life_.next(), Next::kEnd);
  EXPECT_THAT(life_.status(), StatusIs(absl::StatusCode::kInternal,
                                       "a gradient is not finite"));
}

TEST_F(ServingLifeTest, ANewPlanComesBeforeAFatalErrorOfTheOldOne) {
  ServePlan(1);
  life_.OnNews(absl::OkStatus(),
               absl::InternalError("a gradient is not finite"));
  EXPECT_EQ(life_.next(), Next::kGetPlan);
}

TEST_F(ServingLifeTest, EndsWithoutAPlan) {
  life_.OnPlan(absl::UnavailableError("the coordinator is lost"));
  EXPECT_EQ(life_.next(), Next::kEnd);
  EXPECT_THAT(life_.status(), StatusIs(absl::StatusCode::kUnavailable, "lost"));
}

TEST_F(ServingLifeTest,
       AnUnreadableCheckpointIsReportedAndAnotherPlanWaitedFor) {
  life_.OnPlan(PlanOf(3));
  life_.OnStarted(Unreadable(absl::DataLossError("a page is damaged")));
  ASSERT_EQ(life_.next(), Next::kReportUnreadable);
  EXPECT_THAT(life_.status(),
              StatusIs(absl::StatusCode::kDataLoss, "a page is damaged"));
  life_.OnNews(kInForce);
  EXPECT_EQ(life_.next(), Next::kReportUnreadable);
  life_.OnNews(absl::OkStatus());
  EXPECT_EQ(life_.next(), Next::kGetPlan);
  EXPECT_EQ(life_.wanted_epoch(), 4u);
}

TEST_F(ServingLifeTest, AnotherErrorAtTheStartEndsTheServer) {
  life_.OnPlan(PlanOf(3));
  life_.OnStarted(absl::FailedPreconditionError("holds other parameters"));
  EXPECT_EQ(life_.next(), Next::kEnd);
  EXPECT_THAT(life_.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       "other parameters"));
}

}  // namespace
}  // namespace tributary
