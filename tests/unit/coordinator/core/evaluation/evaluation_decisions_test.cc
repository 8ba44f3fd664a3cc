// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/evaluation_decisions.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

// Two servers, one worker, 100 steps in epochs of 10. Evaluations within epochs
// every 4 steps.
class EvaluationDecisionsTest : public ::testing::Test {
 protected:
  void Open(const std::string& metric, bool keep_best, int64_t stop_after,
            int64_t total_steps = 100, int64_t start_step = 0,
            int64_t checkpoint_every = 0) {
    JobState::Options options;
    options.job.mutable_cluster()->set_servers(2);
    options.job.mutable_cluster()->set_workers(1);
    options.job.mutable_strategy()->mutable_parameter_server();
    options.job.mutable_checkpoint()->set_at_end(true);
    options.job.mutable_checkpoint()->set_every_steps(checkpoint_every);
    options.job.mutable_evaluation()->set_every_steps(4);
    options.job.mutable_evaluation()->set_metric(metric);
    options.job.mutable_evaluation()->set_keep_best(keep_best);
    options.job.mutable_evaluation()->set_stop_after(stop_after);
    options.start.step = start_step;
    state_.emplace(options, 0);
    decisions_.emplace(&*state_);
    state_->AllowStart("checkpoints");
    for (const char* name : {"a", "b"}) Join(v1::ROLE_SERVER, name);
    const v1::RegisterResponse worker = Join(v1::ROLE_WORKER, "w");
    v1::DeclareModelRequest model;
    model.set_incarnation(worker.incarnation());
    model.add_parameters()->set_name("0.bias");
    model.mutable_parameters(0)->add_shape(3);
    model.set_total_steps(total_steps);
    model.set_steps_per_epoch(10);
    ASSERT_TRUE(state_->DeclareModel(model, 0).ok());
  }
  v1::RegisterResponse Join(v1::Role role, const std::string& name) {
    v1::RegisterRequest request;
    request.set_role(role);
    request.set_instance(name);
    request.set_address(name + ":7000");
    const v1::RegisterResponse place = state_->Register(request, 0).value();
    if (role == v1::ROLE_SERVER) servers_.push_back(place);
    return place;
  }
  void Evaluate(int64_t step, double value) {
    decisions_->Add({.step = step, .metrics = {{"accuracy", value}}});
    decisions_->Stand(step, now_);
  }
  absl::StatusOr<v1::AwaitEvaluationResponse> Answer(int64_t step) {
    return decisions_->Answer(step, /*complete=*/true, now_);
  }
  void TellCut(const v1::RegisterResponse& server, int64_t step) {
    v1::HeartbeatRequest request;
    request.set_role(v1::ROLE_SERVER);
    request.set_index(server.index());
    request.set_incarnation(server.incarnation());
    request.set_plan_epoch(1);
    request.set_cut_step(step);
    state_->Apply(request, 0, 0);
  }

  std::optional<JobState> state_;
  std::optional<EvaluationDecisions> decisions_;
  std::vector<v1::RegisterResponse> servers_;
  int64_t now_ = 0;
};

TEST_F(EvaluationDecisionsTest, StopsAfterSoManyWithoutABetterOne) {
  Open("accuracy", false, 2);
  Evaluate(4, .5);
  Evaluate(8, .7);
  Evaluate(10, .6);
  ASSERT_TRUE(Answer(10).ok());
  EXPECT_FALSE(Answer(10)->has_stop_step());
  Evaluate(12, .7);
  EXPECT_EQ(Answer(12)->stop_step(), 12);
  EXPECT_EQ(state_->steps().final_step(), 12);
  EXPECT_FALSE(state_->steps().stop().by_person());
  EXPECT_EQ(state_->TakeNotices().back(),
            "stops after step 12: 2 evaluations without a better accuracy; the "
            "best, 0.7, was after step 8");
}

// The job may end within an epoch.
TEST_F(EvaluationDecisionsTest, TheOneAtTheJobsEndCounts) {
  Open("accuracy", true, 0, /*total_steps=*/97);
  Evaluate(90, .5);
  Evaluate(97, .6);
  EXPECT_EQ(decisions_->best().step(), 97);
}

TEST_F(EvaluationDecisionsTest, AnEvaluationOfAStoppedRunDoesNotCount) {
  Open("accuracy", false, 1);
  Evaluate(4, .5);
  Evaluate(7, .4);  // neither the end of an epoch nor a fourth step
  EXPECT_FALSE(Answer(7)->has_stop_step());
  EXPECT_EQ(decisions_->best().since(), 0);
}

TEST_F(EvaluationDecisionsTest, TheRanksWaitForTheServersSnapshots) {
  Open("accuracy", true, 0);
  EXPECT_THAT(decisions_->Answer(4, /*complete=*/false, 0),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "other ranks' evaluation after step 4"));
  Evaluate(4, .5);
  EXPECT_EQ(decisions_->cut_step(), 4);
  EXPECT_THAT(Answer(4), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                  "those after step 4"));
  TellCut(servers_[0], 4);
  EXPECT_FALSE(Answer(4).ok());
  TellCut(servers_[1], 4);
  ASSERT_TRUE(Answer(4).ok());
  EXPECT_TRUE(Answer(4)->checkpoint());
  Evaluate(8, .4);
  EXPECT_EQ(decisions_->cut_step(), 4) << "not the best";
  EXPECT_FALSE(Answer(8)->checkpoint());
}

// 0.1 with class weights of 0.1 is no better loss than 0.9 without them.
TEST_F(EvaluationDecisionsTest, TheBestOfAnotherBasisDoesNotCount) {
  Open("accuracy", true, 2);
  EXPECT_EQ(decisions_->SetBasis(7), "");
  Evaluate(4, .9);
  Evaluate(8, .8);
  SavedEvaluations saved;
  decisions_->Save(8, &saved);
  EXPECT_EQ(saved[0].decided().basis(), 7u);

  for (const uint32_t basis : {0u, 7u, 8u}) {
    Open("accuracy", true, 2);
    decisions_->Restore({}, saved);
    const std::string notice = decisions_->SetBasis(basis);
    EXPECT_EQ(notice.empty(), basis != 8) << basis;
    EXPECT_EQ(decisions_->best().step().has_value(), basis != 8) << basis;
    Evaluate(12, .5);
    EXPECT_EQ(decisions_->best().value(), basis == 8 ? .5 : .9) << basis;
    EXPECT_EQ(state_->steps().stop().stopped_early(), basis != 8) << basis;
  }
  SavedEvaluations after;
  decisions_->Save(8, &after);
  EXPECT_FALSE(after[0].decided().has_best_step());
  EXPECT_EQ(after[0].decided().basis(), 8u) << "a later coordinator agrees";
}

// The weights that a run starts with are the first to compare, if the job has
// not compared before or by another metric.
TEST_F(EvaluationDecisionsTest, AnotherMetricBeginsWithTheStart) {
  Open("accuracy", true, 0);
  Evaluate(4, .9);
  decisions_->Add({.step = 6, .metrics = {{"accuracy", .5}, {"loss", .3}}});
  SavedEvaluations saved;
  decisions_->Save(6, &saved);
  for (const bool compared : {true, false}) {
    if (!compared) saved.Mutable(0)->clear_decided();
    for (const int64_t start : {6, 4}) {
      Open("loss", true, 0, /*total_steps=*/100, start);
      decisions_->Restore({}, saved);
      EXPECT_EQ(decisions_->best().step().has_value(), start == 6);
      EXPECT_EQ(decisions_->SetBasis(0),
                compared ? "the best accuracy so far does not count: the job "
                           "compares by loss now"
                         : "");
    }
  }
}

// A program, or a checkpoint of an earlier version, names none.
TEST_F(EvaluationDecisionsTest, AnUnknownBasisChangesNothing) {
  Open("accuracy", true, 0);
  Evaluate(4, .9);
  EXPECT_EQ(decisions_->SetBasis(7), "");
  EXPECT_EQ(decisions_->best().step(), 4);
}

// Under ssp and async the weights after these steps are others now.
TEST_F(EvaluationDecisionsTest, WhatIsComputedAgainNoLongerCounts) {
  Open("accuracy", true, 3);
  Evaluate(4, .5);
  Evaluate(8, .4);
  Evaluate(12, .9);
  decisions_->GoBack(8);
  EXPECT_EQ(decisions_->best().step(), 4);
  EXPECT_EQ(decisions_->best().since(), 1);
  SavedEvaluations saved;
  decisions_->Save(100, &saved);
  EXPECT_EQ(saved[0].step(), 8);
  decisions_->GoBack(0);
  EXPECT_FALSE(decisions_->best().step().has_value());
  Evaluate(16, .3);
  EXPECT_EQ(decisions_->kept_step(), 16);
}

TEST_F(EvaluationDecisionsTest, AServerThatDoesNotAnswerHoldsNobodyForEver) {
  Open("accuracy", true, 0);
  Evaluate(4, .5);
  EXPECT_FALSE(Answer(4).ok());
  now_ += EvaluationDecisions::kSnapshotMicros;
  EXPECT_TRUE(Answer(4).ok());
}

// A later one must not take the place of the best weights on a slow disk.
TEST_F(EvaluationDecisionsTest, AStepWithACheckpointIsAskedForAsWell) {
  Open("accuracy", true, 0, /*total_steps=*/100, /*start_step=*/0,
       /*checkpoint_every=*/4);
  Evaluate(4, .5);
  EXPECT_EQ(decisions_->cut_step(), 4);
}

TEST_F(EvaluationDecisionsTest, TheLastStepHasACheckpointAnyway) {
  Open("accuracy", true, 0);
  Evaluate(100, .5);
  EXPECT_EQ(decisions_->cut_step(), 0);
  EXPECT_FALSE(Answer(100)->checkpoint());
}

}  // namespace
}  // namespace tributary
