// SPDX-License-Identifier: Apache-2.0
// The evaluations of a job on the disk, and after another coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/host/steady_waits.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/service/job_saving_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

class JobEvaluationsTest : public JobSavingTest {
 protected:
  // A job whose epochs have one step, so that every evaluation counts.
  void Begin(int64_t stop_after) {
    v1::JobSpec& job = options_.state.job;
    job.mutable_training()->mutable_loss()->mutable_cross_entropy();
    job.mutable_evaluation()->set_metric("accuracy");
    job.mutable_evaluation()->set_every_steps(1);
    if (stop_after > 0) job.mutable_evaluation()->set_stop_after(stop_after);
    control_ = std::make_unique<JobControl>(options_);
    control_->AllowStart("checkpoints");
    JobSavingTest::Begin();
  }
  absl::Status Await(int64_t step) {
    v1::AwaitEvaluationRequest request;
    request.set_rank(0);
    request.set_incarnation(workers_[0].incarnation());
    request.set_plan_epoch(1);
    request.set_step(step);
    return control_->calls().AwaitEvaluation(request).status();
  }
  v1::ReportEvaluationRequest Part(int rank, int64_t step, uint64_t term) {
    v1::ReportEvaluationRequest request;
    request.set_rank(static_cast<uint32_t>(rank));
    request.set_incarnation(workers_[rank].incarnation());
    request.set_step(step);
    request.set_term(term);
    return request;
  }
};

// The code is a server's for an ended plan: the rank asks for the next plan.
TEST_F(JobEvaluationsTest, ARankThatWaitsForADecisionHearsThatThePlanIsOver) {
  Begin(/*stop_after=*/3);
  v1::AwaitEvaluationRequest request;
  request.set_rank(0);
  request.set_incarnation(workers_[0].incarnation());
  request.set_plan_epoch(1);
  request.set_step(1);
  request.set_wait_ms(60'000);
  const absl::Duration begin = SteadyNow();
  const auto await = [&] {
    absl::Status status;
    do {
      status = control_->calls().AwaitEvaluation(request).status();
    } while (absl::IsResourceExhausted(status));  // too many calls wait
    return status.code();
  };
  // Starts as many calls as may wait: once one more is refused, all wait.
  std::vector<std::thread> ranks;
  const v1::ClusterSpec& cluster = options_.state.job.cluster();
  for (int i = 0; i < cluster.servers() + cluster.workers(); ++i) {
    ranks.emplace_back(
        [&] { EXPECT_EQ(await(), absl::StatusCode::kFailedPrecondition); });
  }
  v1::AwaitEvaluationRequest look = request;
  look.set_wait_ms(0);
  while (!absl::IsResourceExhausted(
      control_->calls().AwaitEvaluation(look).status())) {
    std::this_thread::yield();
  }
  control_->MemberLost(v1::ROLE_SERVER, 0, /*pid=*/0, "killed");
  for (std::thread& rank : ranks) rank.join();
  // Without the loss every call would have waited that long.
  EXPECT_LT(SteadyNow() - begin, JobCalls::WaitOf(request.wait_ms()));
}

// No other rule leaves a checkpoint of this job.
TEST_F(JobEvaluationsTest, TheEndWaitsForThoseOfTheBestWeights) {
  options_.state.job.mutable_evaluation()->set_keep_best(true);
  options_.state.job.mutable_checkpoint()->set_at_end(false);
  Begin(/*stop_after=*/0);
  ASSERT_TRUE(Evaluate(1, 3).ok());
  v1::HeartbeatRequest server = Beat(v1::ROLE_SERVER, server_);
  EXPECT_EQ(control_->calls().Heartbeat(server)->cut_step(), 0)
      << "the parts may be those of an earlier plan";
  EXPECT_FALSE(Await(1).ok());
  const auto wanted = control_->calls().Heartbeat(server);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->cut_step(), 1);
  EXPECT_TRUE(wanted->cut_is_best());
  EXPECT_TRUE(control_->output().CheckpointOpen());
  v1::CheckpointReport& report = *server.add_checkpoints();
  report.set_step(1);
  report.set_plan_epoch(1);
  report.mutable_file()->set_name("shard-0");
  ASSERT_TRUE(control_->calls().Heartbeat(server).ok());
  const auto pending = control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_TRUE(
      control_->output().ManifestWritten(*pending, "folder", absl::OkStatus()));
  EXPECT_FALSE(control_->output().CheckpointOpen());
}

// The end waits although no writer has told the new coordinator anything yet.
// It does not if the writer has told the old one that it has no file.
TEST_F(JobEvaluationsTest, AfterATakeoverTheEndWaitsForThoseOfTheBestWeights) {
  options_.state.job.mutable_evaluation()->set_keep_best(true);
  options_.state.job.mutable_checkpoint()->set_at_end(false);
  Begin(/*stop_after=*/0);
  ASSERT_TRUE(Evaluate(1, 3).ok());
  EXPECT_FALSE(Await(1).ok());
  TakeOver();
  EXPECT_TRUE(control_->output().CheckpointOpen());
  v1::HeartbeatRequest server = Beat(v1::ROLE_SERVER, server_);
  ASSERT_TRUE(control_->calls().Heartbeat(server).ok());
  EXPECT_TRUE(control_->output().CheckpointOpen());
  server.set_checkpointed_step(1);
  ASSERT_TRUE(control_->calls().Heartbeat(server).ok());
  EXPECT_FALSE(control_->output().CheckpointOpen());
}

TEST_F(JobEvaluationsTest, TheStateDoesNotGrowWithThem) {
  Begin(/*stop_after=*/0);
  const int before = tries_;
  for (int64_t step = 1; step <= 50; ++step) {
    ASSERT_TRUE(Evaluate(step).ok());
  }
  EXPECT_EQ(kept_evaluations_.size(), 50u);
  EXPECT_EQ(tries_, before) << "the state is not written again";
  EXPECT_EQ(kept_.evaluations_size(), 0);
}

TEST_F(JobEvaluationsTest, AJobThatDecidesByThemKeepsTheLastAlone) {
  Begin(/*stop_after=*/100);
  for (int64_t step = 1; step <= 50; ++step) {
    ASSERT_TRUE(Evaluate(step, step == 20 ? 5 : 1).ok());
  }
  ASSERT_EQ(kept_.evaluations_size(), 1);
  EXPECT_EQ(kept_.evaluations(0).step(), 50);
  const v1::EvaluationsDecided& decided = kept_.evaluations(0).decided();
  EXPECT_EQ(decided.best_step(), 20);
  EXPECT_EQ(decided.best_value(), 1);
  EXPECT_EQ(decided.since_best(), 30);
  EXPECT_EQ(decided.newest_step(), 50);
}

TEST_F(JobEvaluationsTest, ASuccessorDecidesAsTheOneBeforeWouldHave) {
  for (const bool damaged : {false, true}) {
    kept_evaluations_.clear();
    Begin(/*stop_after=*/3);
    ASSERT_TRUE(Evaluate(1, 3).ok());
    ASSERT_TRUE(Evaluate(2, 2).ok());
    // A line of the file cannot be read, and another shows a wrong number.
    if (damaged) {
      kept_evaluations_.erase(kept_evaluations_.begin());
      kept_evaluations_[0].metrics["accuracy"] = 1;
    }
    TakeOver();
    EXPECT_EQ(control_->Totals().best.step, 1);
    ASSERT_TRUE(Evaluate(3, 2).ok());
    EXPECT_EQ(control_->Snapshot().phase(), v1::JOB_PHASE_RUNNING);
    ASSERT_TRUE(Evaluate(4, 2).ok());
    EXPECT_EQ(control_->Snapshot().phase(), v1::JOB_PHASE_STOPPING) << damaged;
    EXPECT_EQ(kept_.stop_step(), 3) << "the last step";
  }
}

// The evaluation was written, but the coordinator ended before its state was.
TEST_F(JobEvaluationsTest, AnEvaluationThatTheStateDoesNotKnowCountsOnce) {
  Begin(/*stop_after=*/3);
  ASSERT_TRUE(Evaluate(1, 3).ok());
  const v1::CoordinatorState before = kept_;
  ASSERT_TRUE(Evaluate(2, 1).ok());
  kept_ = before;
  TakeOver();
  ASSERT_TRUE(Evaluate(2, 1).ok());  // told again
  EXPECT_EQ(kept_.evaluations(0).decided().since_best(), 1);
  EXPECT_EQ(kept_evaluations_.size(), 2u);
}

TEST_F(JobEvaluationsTest, TheStateOfAnOlderProgramHasAllOfThem) {
  Begin(/*stop_after=*/3);
  const std::vector<EvaluationRecord> all = {
      {.step = 1, .metrics = {{"accuracy", 0.5}}},
      {.step = 2, .metrics = {{"accuracy", 0.4}}}};
  kept_.clear_evaluations();
  for (const EvaluationRecord& one : all) {
    SaveEvaluation(one, kept_.mutable_evaluations());
  }
  kept_evaluations_ = all;  // as JobRun::FindEvaluations finds them
  TakeOver();
  ASSERT_EQ(kept_.evaluations_size(), 1);
  EXPECT_EQ(kept_.evaluations(0).decided().best_step(), 1);
  EXPECT_EQ(kept_.evaluations(0).decided().since_best(), 1);
}

TEST_F(JobEvaluationsTest, AManifestHasTheLastBeforeItsStep) {
  Begin(/*stop_after=*/100);
  for (const int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(Evaluate(step, step == 2 ? 2 : 3).ok());
  }
  v1::HeartbeatRequest beat = Beat(v1::ROLE_SERVER, server_);
  v1::CheckpointReport* report = beat.add_checkpoints();
  report->set_step(2);
  report->set_plan_epoch(1);
  report->mutable_file()->set_name("shard-0-of-1");
  ASSERT_TRUE(control_->calls().Heartbeat(beat).ok());
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  ASSERT_EQ(pending->manifest.evaluations_size(), 1);
  EXPECT_EQ(pending->manifest.evaluations(0).step(), 2);
  EXPECT_EQ(pending->manifest.evaluations(0).decided().best_step(), 1);
  EXPECT_EQ(pending->manifest.evaluations(0).decided().since_best(), 1);

  // Another run is resumed from it.
  options_.state.start.step = 2;
  options_.state.start.manifest =
      std::make_shared<v1::CheckpointManifest>(pending->manifest);
  control_ = std::make_unique<JobControl>(options_);
  EXPECT_EQ(control_->Totals().best.step, 1);
  EXPECT_EQ(control_->Totals().best.value, 0.6);
  EXPECT_EQ(control_->Snapshot().test().at("accuracy"), 0.4);
  // The run also evaluates the weights that it starts with, which counts once.
  kept_evaluations_.clear();
  JobSavingTest::Begin();
  ASSERT_TRUE(Evaluate(2, 1).ok());
  ASSERT_EQ(kept_evaluations_.size(), 1u);
  EXPECT_EQ(kept_evaluations_[0].step, 2);
  EXPECT_EQ(control_->Snapshot().test().at("accuracy"), 0.2);
  EXPECT_EQ(control_->Totals().best.step, 1);
  // A run may compare by another metric: then only the last has a value.
  options_.state.job.mutable_evaluation()->set_metric("loss");
  control_ = std::make_unique<JobControl>(options_);
  EXPECT_EQ(control_->Totals().best.step, 2);
  EXPECT_EQ(control_->Totals().best.value, 0);
}

TEST_F(JobEvaluationsTest, WhileTheDiskIsFullTheyWaitAndTheJobGoesOn) {
  Begin(/*stop_after=*/0);
  full_ = true;
  ASSERT_TRUE(Evaluate(1).ok());
  ASSERT_TRUE(Evaluate(2).ok());
  const auto notices = control_->WaitForUpdate(absl::ZeroDuration()).notices;
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("cannot save an evaluation, and tries "
                                    "again: no space"));
  const auto answer = control_->calls().ReportEvaluation(Part(0, 2, 1));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->has_saved_step()) << "its sender keeps it";
  full_ = false;
  Tick();
  EXPECT_EQ(kept_evaluations_.size(), 2u);
  EXPECT_EQ(control_->calls().ReportEvaluation(Part(0, 2, 1))->saved_step(), 2);
}

// Otherwise the evaluation after step 2 would be complete, but the one after
// step 1, of which the earlier coordinator had a part, would never be.
TEST_F(JobEvaluationsTest, ASenderThatDoesNotKnowTheTermHasToRepeatFirst) {
  Begin(/*stop_after=*/0);
  ASSERT_TRUE(control_->calls().ReportEvaluation(Part(0, 1, 1)).ok());
  TakeOver();
  ASSERT_TRUE(control_->calls().ReportEvaluation(Part(1, 1, 2)).ok());
  EXPECT_THAT(control_->calls().ReportEvaluation(Part(0, 2, 1)),
              StatusIs(absl::StatusCode::kAborted,
                       "the evaluation names term 1, this coordinator has "
                       "term 2"));
  ASSERT_TRUE(control_->calls().ReportEvaluation(Part(0, 1, 2)).ok());
  ASSERT_TRUE(control_->calls().ReportEvaluation(Part(0, 2, 2)).ok());
  ASSERT_TRUE(control_->calls().ReportEvaluation(Part(1, 2, 2)).ok());
  EXPECT_EQ(kept_evaluations_.size(), 2u);
}

}  // namespace
}  // namespace tributary
