// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/rank_life.h"

#include <gtest/gtest.h>

#include <string>

#include "common/checkpoint/restore.h"

namespace tributary {
namespace {

using Act = RankLife::Act;

constexpr int64_t kLease = 1'000'000;

class RankLifeTest : public ::testing::Test {
 protected:
  static MemberState MakeState() {
    v1::RegisterResponse place;
    place.set_incarnation(1);
    return MemberState(v1::ROLE_WORKER, place, "10.0.0.1:7000",
                       /*lost_micros=*/30'000'000, /*now_micros=*/0);
  }

  Act Next() { return life_.Next(&state_, now_); }

  // Gives the coordinator's next answer, 0.1 s later; returns the rank's act.
  Act Answer(uint64_t newest_plan, const std::string& waits_for = "",
             v1::JobPhase phase = v1::JOB_PHASE_RUNNING,
             const std::string& error = "") {
    now_ += 100'000;
    v1::HeartbeatResponse answer;
    answer.set_plan_epoch(newest_plan);
    answer.set_waits_for(waits_for);
    answer.set_phase(phase);
    answer.set_message(error);
    answer.set_wants_weights(wants_weights_);
    state_.OnAnswer(state_.NextHeartbeat(), answer, now_);
    return Next();
  }

  // Brings the rank to the training under the first plan.
  void BeginTraining() {
    EXPECT_EQ(Next(), Act::kDeclareModel);
    life_.Declared(absl::OkStatus());
    EXPECT_EQ(Next(), Act::kGetPlan);
    state_.OnPlan(1, 0);
    life_.Planned(absl::OkStatus(), 1);
    EXPECT_EQ(Next(), Act::kTrain);
  }
  Act FailWith(absl::StatusCode code) {
    life_.Trained(absl::Status(code, "the work under plan 1 failed"));
    return Next();
  }

  int64_t now_ = 0;
  bool wants_weights_ = false;
  MemberState state_ = MakeState();
  RankLife life_{{.group_breaks = false, .lease_micros = kLease}};
};

TEST_F(RankLifeTest, ARankThatFinishesEndsWhenTheJobIsDone) {
  BeginTraining();
  life_.Trained(absl::OkStatus());
  EXPECT_EQ(Next(), Act::kWait);
  EXPECT_TRUE(life_.finished());
  EXPECT_TRUE(state_.NextHeartbeat().finished());
  EXPECT_EQ(Answer(1), Act::kWait);
  EXPECT_EQ(Answer(1, "", v1::JOB_PHASE_DONE), Act::kEnd);
  EXPECT_TRUE(life_.status().ok());
}

TEST_F(RankLifeTest, AFinishedRankTrainsAgainUnderANewerPlan) {
  BeginTraining();
  life_.Trained(absl::OkStatus());
  EXPECT_EQ(Next(), Act::kWait);
  EXPECT_EQ(Answer(2), Act::kGetPlan);
  EXPECT_EQ(life_.epoch(), 1u);
  life_.Planned(absl::OkStatus(), 2);
  EXPECT_EQ(Next(), Act::kTrain);
  EXPECT_EQ(life_.epoch(), 2u);
}

TEST_F(RankLifeTest, AFinishedRankGivesItsWeightsAgainOnceWhenTheyAreWanted) {
  BeginTraining();
  life_.Trained(absl::OkStatus());
  EXPECT_EQ(Next(), Act::kWait);
  wants_weights_ = true;
  EXPECT_EQ(Answer(1), Act::kGiveWeights);
  EXPECT_EQ(Next(), Act::kWait);
  EXPECT_EQ(Answer(1), Act::kGiveWeights);
}

TEST_F(RankLifeTest, TrainingIsInVainOnceThePlanOrTheJobIsOver) {
  BeginTraining();
  EXPECT_EQ(Next(), Act::kWait);
  EXPECT_EQ(Answer(1), Act::kWait);
  EXPECT_EQ(Answer(2), Act::kCancel);
  life_.Trained(absl::CancelledError("a new plan is in force"));
  EXPECT_EQ(Next(), Act::kGetPlan);
}

TEST_F(RankLifeTest, APlanThatIsOverAlreadyIsNotTrainedUnder) {
  EXPECT_EQ(Next(), Act::kDeclareModel);
  life_.Declared(absl::OkStatus());
  EXPECT_EQ(Next(), Act::kGetPlan);
  EXPECT_EQ(Answer(3), Act::kWait);
  life_.Planned(absl::OkStatus(), 2);
  EXPECT_EQ(Next(), Act::kGetPlan);
  EXPECT_EQ(life_.epoch(), 2u);
}

TEST_F(RankLifeTest, ALostConnectionIsForgivenWhileALeaseMayStillExpire) {
  BeginTraining();
  EXPECT_EQ(FailWith(absl::StatusCode::kUnavailable), Act::kWait);
  // The patience begins with the first answer after the error.
  for (int answer = 1; answer <= 20; ++answer) {
    EXPECT_EQ(Answer(1), Act::kWait) << answer;
  }
  EXPECT_EQ(Answer(1), Act::kFail);
  EXPECT_EQ(life_.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RankLifeTest, PatienceBeginsAnewWhileTheCoordinatorNamesWhatItAwaits) {
  BeginTraining();
  EXPECT_EQ(FailWith(absl::StatusCode::kUnavailable), Act::kWait);
  for (int answer = 1; answer <= 100; ++answer) {
    EXPECT_EQ(Answer(1, "server 0"), Act::kWait) << answer;
  }
  for (int answer = 1; answer < 20; ++answer) {
    EXPECT_EQ(Answer(1), Act::kWait) << answer;
  }
  EXPECT_EQ(Answer(2), Act::kGetPlan);
}

TEST_F(RankLifeTest, ARefusalMustBeExplainedByTheNextAnswers) {
  BeginTraining();
  EXPECT_EQ(FailWith(absl::StatusCode::kFailedPrecondition), Act::kWait);
  EXPECT_EQ(Answer(1), Act::kWait);
  EXPECT_EQ(Answer(1), Act::kWait);
  EXPECT_EQ(Answer(1), Act::kFail);
}

TEST_F(RankLifeTest, AnErrorOfTheRanksOwnFailsAtOnceUnlessThePlanIsOver) {
  BeginTraining();
  EXPECT_EQ(FailWith(absl::StatusCode::kInternal), Act::kFail);
  EXPECT_EQ(Answer(1), Act::kWait);  // it is over: nothing more is done
}

TEST_F(RankLifeTest, AnyErrorIsForgivenWhenANewerPlanIsKnown) {
  BeginTraining();
  EXPECT_EQ(Answer(2), Act::kCancel);
  EXPECT_EQ(FailWith(absl::StatusCode::kInternal), Act::kGetPlan);
  EXPECT_EQ(life_.status().code(), absl::StatusCode::kInternal);
}

TEST_F(RankLifeTest, ABrokenGroupIsReported) {
  life_ = RankLife({.group_breaks = true, .lease_micros = kLease});
  BeginTraining();
  EXPECT_EQ(FailWith(absl::StatusCode::kAborted), Act::kWait);
  EXPECT_EQ(state_.NextHeartbeat().broken_group_epoch(), 1u);
  EXPECT_EQ(state_.NextHeartbeat().broken_group(),
            "the work under plan 1 failed");
}

TEST_F(RankLifeTest, AnUnreadableCheckpointNeedsAnotherPlan) {
  BeginTraining();
  life_.Trained(Unreadable(absl::DataLossError("the checksum differs")));
  EXPECT_EQ(Next(), Act::kReportUnreadable);
  EXPECT_EQ(Next(), Act::kWait);
  life_.Replanned(absl::OkStatus());
  EXPECT_EQ(Next(), Act::kGetPlan);
}

TEST_F(RankLifeTest, TheEndOfTheJobExplainsTheRanksOwnError) {
  BeginTraining();
  EXPECT_EQ(Answer(1, "", v1::JOB_PHASE_FAILED, "worker 2 was lost"),
            Act::kCancel);
  EXPECT_EQ(FailWith(absl::StatusCode::kInternal), Act::kEnd);
  EXPECT_EQ(life_.status().message(), "worker 2 was lost");
}

TEST_F(RankLifeTest, AnErrorBeforeTheFirstPlanIsReported) {
  EXPECT_EQ(Next(), Act::kDeclareModel);
  life_.Declared(absl::InvalidArgumentError("no such column"));
  EXPECT_EQ(Next(), Act::kFail);
  EXPECT_EQ(life_.status().message(), "no such column");
}

}  // namespace
}  // namespace tributary
