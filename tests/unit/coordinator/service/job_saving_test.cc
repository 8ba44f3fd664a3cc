// SPDX-License-Identifier: Apache-2.0
// The state that a JobControl saves, and its messages while it cannot save: a
// variable stands for the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/service/job_saving_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
// ---- write-ahead

TEST_F(JobSavingTest, NoPlaceIsGivenThatIsNotOnTheDisk) {
  full_ = true;
  const auto refused = Join(v1::ROLE_SERVER, "server");
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("cannot save its state: no space"));
  EXPECT_EQ(kept_.places_size(), 0);
  full_ = false;
  Tick();
  const auto place = Join(v1::ROLE_SERVER, "server");
  ASSERT_TRUE(place.ok()) << place.status();
  ASSERT_EQ(kept_.places_size(), 1);
  EXPECT_EQ(kept_.places(0).incarnation(), place->incarnation());
}

TEST_F(JobSavingTest, MembersGoOnWithTheStateBeforeWhileTheNewestIsNotSaved) {
  Begin();
  v1::HeartbeatRequest beat = Beat(v1::ROLE_WORKER, workers_[0]);
  ASSERT_TRUE(control_->calls().Heartbeat(beat).ok());
  full_ = true;
  control_->RequestStop();
  const v1::HeartbeatResponse held = control_->calls().Heartbeat(beat).value();
  EXPECT_EQ(held.phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(held.plan_epoch(), 1u);
  EXPECT_THAT(held.waits_for(), HasSubstr("no space"));
  EXPECT_EQ(control_->Snapshot().phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_TRUE(absl::IsUnavailable(control_->calls().GetPlan({}).status()));
  full_ = false;
  Tick();
  EXPECT_EQ(control_->calls().Heartbeat(beat).value().phase(),
            v1::JOB_PHASE_STOPPING);
  EXPECT_TRUE(kept_.stop_requested());
}

TEST_F(JobSavingTest, AJobIsNotDoneBeforeItsStateSaysSo) {
  Begin();
  full_ = true;
  control_->output().Saved(1, absl::OkStatus());
  EXPECT_NE(control_->WaitForUpdate(absl::ZeroDuration()).phase,
            v1::JOB_PHASE_DONE);
  full_ = false;
  Tick();
  EXPECT_EQ(control_->WaitForUpdate(absl::ZeroDuration()).phase,
            v1::JOB_PHASE_DONE);
  EXPECT_EQ(kept_.phase(), v1::JOB_PHASE_DONE);
}

// Otherwise the thread that reads the final weights would turn in a loop.
TEST_F(JobSavingTest, ThereIsNothingToDoWhileTheStateIsNotSaved) {
  Begin();
  EXPECT_FALSE(control_->output().HasWork());
  for (const v1::RegisterResponse& worker : workers_) {
    ASSERT_TRUE(control_->calls().Heartbeat(Finished(worker)).ok());
  }
  EXPECT_TRUE(control_->output().HasWork());
  full_ = true;
  control_->RequestStop();
  EXPECT_FALSE(control_->output().HasWork());
  full_ = false;
  Tick();
  EXPECT_TRUE(control_->output().HasWork());
}

TEST_F(JobSavingTest, AStateThatCannotBeSavedForTooLongFailsTheJob) {
  Begin();
  full_ = true;
  control_->RequestStop();
  v1::HeartbeatResponse answer;
  for (int second = 0; second < 120; ++second) {
    answer =
        control_->calls().Heartbeat(Beat(v1::ROLE_WORKER, workers_[0])).value();
    ASSERT_TRUE(
        control_->calls().Heartbeat(Beat(v1::ROLE_WORKER, workers_[1])).ok());
    ASSERT_TRUE(
        control_->calls().Heartbeat(Beat(v1::ROLE_SERVER, server_)).ok());
    EXPECT_EQ(answer.phase(), v1::JOB_PHASE_RUNNING) << second;
    Tick();
  }
  answer =
      control_->calls().Heartbeat(Beat(v1::ROLE_WORKER, workers_[0])).value();
  EXPECT_EQ(answer.phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(answer.message(), HasSubstr("cannot save its state: no space"));
  EXPECT_EQ(kept_.phase(), v1::JOB_PHASE_RUNNING);
}

TEST_F(JobSavingTest, ADiskThatIsFullIsNotAskedWithEveryHeartbeat) {
  Begin();
  full_ = true;
  control_->RequestStop();
  const int before = tries_;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        control_->calls().Heartbeat(Beat(v1::ROLE_WORKER, workers_[0])).ok());
    control_->Tick(absl::ZeroDuration());
  }
  EXPECT_EQ(tries_, before);
  Tick();
  EXPECT_EQ(tries_, before + 1);
}

TEST_F(JobSavingTest, WhatHasNotChangedIsNotSaved) {
  Begin();
  const int before = tries_;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        control_->calls().Heartbeat(Beat(v1::ROLE_WORKER, workers_[0])).ok());
    Tick(0);
  }
  EXPECT_EQ(tries_, before);
}

// The checkpoint before stays as long as the state names it.
TEST_F(JobSavingTest, ACheckpointThatTheStateDoesNotNameHoldsNothingUp) {
  Begin();
  v1::HeartbeatRequest beat = Beat(v1::ROLE_SERVER, server_);
  v1::CheckpointReport* report = beat.add_checkpoints();
  report->set_step(2);
  report->set_plan_epoch(1);
  report->mutable_file()->set_name("shard-0-of-1");
  ASSERT_TRUE(control_->calls().Heartbeat(beat).ok());
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  full_ = true;
  ASSERT_TRUE(
      control_->output().ManifestWritten(*pending, "step-2", absl::OkStatus()));
  EXPECT_FALSE(control_->saved());
  EXPECT_TRUE(control_->calls().GetPlan({}).ok());
  EXPECT_EQ(control_->calls().Heartbeat(beat).value().checkpoints_taken(), 0u);
  full_ = false;
  Tick();
  EXPECT_TRUE(control_->saved());
  EXPECT_EQ(kept_.restore_step(), 2);
  EXPECT_EQ(control_->calls().Heartbeat(beat).value().checkpoints_taken(), 1u);
}

// ---- terms

TEST_F(JobSavingTest, EachCoordinatorHasATermAndSavesItFirst) {
  Begin();
  EXPECT_EQ(control_->term(), 1u);
  EXPECT_EQ(kept_.term(), 1u);
  EXPECT_EQ(workers_[0].term(), 1u);
  TakeOver();
  EXPECT_EQ(kept_.term(), 2u);
  full_ = true;
  TakeOver();
  EXPECT_EQ(control_->term(), 3u);
  EXPECT_TRUE(absl::IsUnavailable(control_->calls().GetPlan({}).status()));
  full_ = false;
  Tick();
  EXPECT_TRUE(control_->calls().GetPlan({}).ok());
  EXPECT_EQ(kept_.term(), 3u);
}

TEST_F(JobSavingTest, OneThatHearsOfALaterTermSaysAndSavesNothingMore) {
  Begin();
  const v1::HeartbeatRequest beat = Beat(v1::ROLE_WORKER, workers_[0]);
  ASSERT_TRUE(control_->calls().Heartbeat(beat).ok());
  v1::HeartbeatRequest later = Beat(v1::ROLE_WORKER, workers_[1]);
  later.set_term(2);
  const int before = tries_;
  EXPECT_TRUE(absl::IsUnavailable(control_->calls().Heartbeat(later).status()));
  EXPECT_TRUE(absl::IsUnavailable(control_->calls().Heartbeat(beat).status()));
  control_->Fail("on its way out");
  control_->RequestStop();
  Tick(600);
  EXPECT_EQ(tries_, before);
  EXPECT_TRUE(control_->deposed());
  EXPECT_TRUE(control_->closed());
  EXPECT_FALSE(control_->output().NextManifest().has_value());
  EXPECT_THAT(control_->WaitForUpdate(absl::ZeroDuration()).deposed,
              HasSubstr("its term is 2, this one's 1"));
}

// ---- what the earlier coordinator had not recorded

TEST_F(JobSavingTest, StepsAreTakenOnceTheSenderKnowsWhoTakesThem) {
  Begin();
  const v1::HeartbeatRequest last = Finished(workers_[0]);
  ASSERT_EQ(control_->calls().Heartbeat(last).value().steps_taken(), 3u);
  TakeOver();
  v1::HeartbeatResponse answer = control_->calls().Heartbeat(last).value();
  EXPECT_EQ(answer.steps_taken(), 0u);
  EXPECT_EQ(answer.term(), 2u);
  for (const v1::RegisterResponse& worker : workers_) {
    v1::HeartbeatRequest again = Finished(worker);
    again.set_term(2);
    EXPECT_EQ(control_->calls().Heartbeat(again).value().steps_taken(), 3u);
  }
  v1::Plan plan;
  int64_t step = 0;
  EXPECT_TRUE(control_->output().ReadyToSave(&plan, &step));
  EXPECT_EQ(control_->WaitForUpdate(absl::ZeroDuration()).steps.size(), 3u);
}

TEST_F(JobSavingTest, AFailureIsHeardWhoeverListens) {
  Begin();
  TakeOver();
  v1::HeartbeatRequest last = Beat(v1::ROLE_WORKER, workers_[0]);
  last.set_term(1);
  last.set_error("the data is gone");
  EXPECT_EQ(control_->calls().Heartbeat(last).value().phase(),
            v1::JOB_PHASE_FAILED);
}

TEST_F(JobSavingTest, TotalsAndEvaluationsAreOfTheWholeJob) {
  options_.started_micros = 77;
  control_ = std::make_unique<JobControl>(options_);
  Begin();
  ASSERT_TRUE(Evaluate(1).ok());
  ASSERT_EQ(kept_evaluations_.size(), 1u);
  TakeOver({.step = 1,
            .epoch = 1,
            .loss = 0.5,
            .samples = 4,
            .training_seconds = 2});
  const JobTotals totals = control_->Totals();
  EXPECT_EQ(totals.steps, 1);
  EXPECT_EQ(totals.samples, 4u);
  EXPECT_EQ(totals.training_seconds, 2);
  EXPECT_EQ(totals.final_loss, 0.5);
  ASSERT_TRUE(Evaluate(1).ok());
  ASSERT_EQ(kept_evaluations_.size(), 1u) << "it is known already";
  EXPECT_EQ(kept_evaluations_[0].samples, 10u);
  EXPECT_EQ(control_->Snapshot().test().count("loss"), 1u);
  EXPECT_EQ(kept_.started_micros(), 77);
}

TEST_F(JobSavingTest, AJobThatValidatesKeepsItsTestApart) {
  options_.state.job.mutable_data()->mutable_validation()->set_fraction(0.5);
  control_ = std::make_unique<JobControl>(options_);
  Begin();
  const auto report = [this](uint64_t samples, bool test) {
    absl::Status status;
    for (const v1::RegisterResponse& worker : workers_) {
      v1::ReportEvaluationRequest request;
      request.set_rank(worker.index());
      request.set_incarnation(worker.incarnation());
      request.set_step(1);
      request.set_test(test);
      request.mutable_part()->set_samples(samples);
      request.mutable_part()->set_values(samples);
      request.mutable_part()->set_loss_sum(
          static_cast<double>(test ? 2 * samples : samples));
      status.Update(control_->calls().ReportEvaluation(request).status());
    }
    return status;
  };
  ASSERT_TRUE(report(5, false).ok());
  ASSERT_EQ(kept_evaluations_.size(), 1u);
  ASSERT_TRUE(report(7, true).ok());
  ASSERT_EQ(kept_evaluations_.size(), 2u);
  EXPECT_EQ(kept_evaluations_[0].set, "validation");
  EXPECT_EQ(kept_evaluations_[0].samples, 10u);
  EXPECT_EQ(kept_evaluations_[1].set, "test");
  EXPECT_EQ(kept_evaluations_[1].samples, 14u);
  TakeOver({.step = 1, .epoch = 1, .loss = 0.5, .samples = 4});
  const v1::JobStatusResponse status = control_->Snapshot();
  EXPECT_EQ(status.validation().at("loss"), 1);
  EXPECT_EQ(status.test().at("loss"), 2);
}

TEST_F(JobSavingTest, AJobWithoutValidationHasNoTestBesideItsEvaluations) {
  control_ = std::make_unique<JobControl>(options_);
  Begin();
  v1::ReportEvaluationRequest request;
  request.set_rank(workers_[0].index());
  request.set_incarnation(workers_[0].incarnation());
  request.set_test(true);
  EXPECT_THAT(control_->calls().ReportEvaluation(request),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "wants data.validation in the job"));
}

}  // namespace
}  // namespace tributary
