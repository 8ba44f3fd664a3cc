// SPDX-License-Identifier: Apache-2.0
// How a job begins and ends.
#include "coordinator/core/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST_F(JobStateTest, PlanIsPublishedWhenAllAreThereAndTheModelIsDeclared) {
  Open(2, 1);
  Join(v1::ROLE_SERVER, "s0");
  EXPECT_EQ(state_->Missing(), "server 1, worker 0, the model");
  const auto worker = Join(v1::ROLE_WORKER, "w0");
  ASSERT_TRUE(Declare(worker).ok());
  EXPECT_EQ(state_->plan(), nullptr);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_WAITING);
  Join(v1::ROLE_SERVER, "s1");
  ASSERT_NE(state_->plan(), nullptr);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  const v1::Plan& plan = *state_->plan();
  EXPECT_EQ(plan.job_id(), 42u);
  EXPECT_EQ(plan.epoch(), 1u);
  ASSERT_EQ(plan.servers_size(), 2);
  EXPECT_EQ(plan.servers(0), "s0:7000");
  EXPECT_EQ(plan.servers(1), "s1:7000");
  EXPECT_EQ(plan.parameters(0).name(), "0.weight");
  EXPECT_EQ(plan.bucket_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(plan.num_workers(), 1);
  EXPECT_EQ(plan.total_steps(), 100);
}

TEST_F(JobStateTest, SecondDeclarationMustMatchTheFirst) {
  Run(2);
  EXPECT_TRUE(Declare(workers_[1]).ok());
  const absl::Status shape = Declare(workers_[1], /*rows=*/11);
  EXPECT_EQ(shape.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(shape.message()),
              HasSubstr("worker 1 declares parameter 0 as \"0.weight\" [11, 3] "
                        "instead of \"0.weight\" [10, 3]"));
  const absl::Status steps = Declare(workers_[1], 10, /*total_steps=*/99);
  EXPECT_THAT(std::string(steps.message()),
              HasSubstr("99 steps instead of 100"));
  // Else the ranks would not train the same model.
  const absl::Status average = Declare(workers_[1], 10, 100, /*momentum=*/0.1);
  EXPECT_EQ(average.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(average.message()),
              HasSubstr("declares parameter 0 as {name: \"0.weight\""));
  EXPECT_THAT(std::string(average.message()),
              HasSubstr("running_momentum: 0.1} instead of {"));
}

TEST_F(JobStateTest, WorkersWithOtherDataAreRefused) {
  Open(1, 2);
  Join(v1::ROLE_SERVER, "s");
  const auto first = Join(v1::ROLE_WORKER, "w0");
  const auto second = Join(v1::ROLE_WORKER, "w1");
  ASSERT_TRUE(Declare(first, 10, 100, 0, /*data_checksum=*/0xabc).ok());
  EXPECT_TRUE(Declare(second, 10, 100, 0, 0xabc).ok());
  EXPECT_TRUE(Declare(second, 10, 100, 0, 0).ok()) << "generated";
  const absl::Status other = Declare(second, 10, 100, 0, 0xdef);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(other.message()),
      HasSubstr("worker 1 declares training data with checksum 00000def "
                "instead of 00000abc"));
}

TEST_F(JobStateTest, WorkersWithOtherTestDataAreRefused) {
  Open(1, 2);
  Join(v1::ROLE_SERVER, "s");
  const auto first = Join(v1::ROLE_WORKER, "w0");
  const auto second = Join(v1::ROLE_WORKER, "w1");
  ASSERT_TRUE(
      Declare(first, 10, 100, 0, 1, /*evaluation_checksum=*/0xabc).ok());
  EXPECT_TRUE(Declare(second, 10, 100, 0, 1, 0xabc).ok());
  const absl::Status other = Declare(second, 10, 100, 0, 1, 0xdef);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("worker 1 declares validation and test data with "
                        "checksum 00000def instead of 00000abc"));
}

TEST_F(JobStateTest, AResumedJobTellsThatItsDataHaveChanged) {
  for (const uint32_t checksum : {0u, 0xabcu, 0xdefu}) {
    restored_data_ = 0xabc;
    Open(1, 1);
    ASSERT_TRUE(Declare(Join(v1::ROLE_WORKER, "w"), 10, 100, 0, checksum).ok());
    const auto notices = state_->TakeNotices();
    ASSERT_EQ(notices.size(), checksum == 0xdef ? 1u : 0u);
    if (!notices.empty()) {
      EXPECT_THAT(notices[0], HasSubstr("are not those of the checkpoint"));
    }
  }
}

TEST_F(JobStateTest, ModelThatNoPlanCanBeMadeOfIsRefused) {
  Open(1, 1);
  const auto worker = Join(v1::ROLE_WORKER, "w");
  EXPECT_EQ(Declare(worker, /*rows=*/0).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Declare(worker, 10, /*total_steps=*/0).code(),
            absl::StatusCode::kInvalidArgument);
  v1::DeclareModelRequest of_another_stage;
  of_another_stage.set_rank(worker.index());
  of_another_stage.set_incarnation(worker.incarnation());
  of_another_stage.set_total_steps(1);
  of_another_stage.set_steps_per_epoch(1);
  of_another_stage.add_parameters()->add_shape(1);
  of_another_stage.mutable_parameters(0)->set_name("w");
  EXPECT_TRUE(state_->DeclareModel(of_another_stage, now_).ok());
  Open(1, 1);
  Join(v1::ROLE_WORKER, "w");
  of_another_stage.mutable_parameters(0)->set_stage(2);
  EXPECT_THAT(
      std::string(state_->DeclareModel(of_another_stage, now_).message()),
      HasSubstr("parameter w is held by stage 1"));
}

TEST_F(JobStateTest, DeclarationOfALostMemberIsRefused) {
  Open(1, 1);
  auto worker = Join(v1::ROLE_WORKER, "w");
  worker.set_incarnation(worker.incarnation() + 1);
  EXPECT_EQ(Declare(worker).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobStateTest, MemberLostBeforeTheJobRunsIsReplaced) {
  Open(1, 1);
  Join(v1::ROLE_SERVER, "s");
  Pass(11);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_WAITING);
  EXPECT_EQ(state_->Missing(), "server 0, worker 0, the model");
  EXPECT_EQ(Join(v1::ROLE_SERVER, "t").index(), 0u);
}

TEST_F(JobStateTest, AProcessKilledBeforeTheJobRunsIsReplacedAtOnce) {
  Open(1, 2);
  Join(v1::ROLE_SERVER, "s");
  const auto worker = Join(v1::ROLE_WORKER, "w");
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_SERVER, 0, /*pid=*/7, "killed",
                                        now_),
            LossVerdict::kReplace);
  EXPECT_EQ(state_->Missing(), "server 0, worker 1, the model");
  EXPECT_EQ(Join(v1::ROLE_SERVER, "t").index(), 0u);
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 1, /*pid=*/0, "killed",
                                        now_),
            LossVerdict::kReplace)
      << "it had not registered";
  EXPECT_EQ(state_->losses().workers_lost(), 0u);
}

TEST_F(JobStateTest, AWorkerKilledBeforeTheJobRunsEndsAJobThatSaysSo) {
  on_worker_loss_ = v1::WORKER_LOSS_FAIL;
  Open(1, 1);
  Join(v1::ROLE_WORKER, "w");
  EXPECT_EQ(state_->losses().MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_),
            LossVerdict::kFatal);
}

TEST_F(JobStateTest, MembersThatNeverComeFailTheJob) {
  Open(1, 1);
  Join(v1::ROLE_SERVER, "s");
  Pass(60);
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->life().message(),
            "waited 60.0 s in vain for server 0, worker 0, the model");
}

TEST_F(JobStateTest, JobIsDoneWhenWorkersHaveFinishedAndWeightsAreSaved) {
  Run(2);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_FALSE(state_->membership().AllWorkersFinished());
  Send(1, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_TRUE(state_->membership().AllWorkersFinished());
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  state_->life().MarkDone();
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_DONE);
}

TEST_F(JobStateTest, WorkerThatFinishesTooEarlyFailsTheJob) {
  Run(1);
  Send(0, {.begun = 99, .finished = true, .last_step = 99});
  EXPECT_EQ(state_->life().message(),
            "worker 0 (node-w0, pid 7) finished after step 99 of 100");
}

TEST_F(JobStateTest, FinishCountsOnlyWhenAllItsStepsWereTaken) {
  Run(1);
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_incarnation(workers_[0].incarnation());
  request.set_plan_epoch(1);
  request.add_steps()->set_step(99);
  request.add_steps()->set_step(100);
  request.set_finished(true);
  state_->Apply(request, /*steps_taken=*/1, /*last_step=*/99);
  EXPECT_FALSE(state_->membership().AllWorkersFinished());
  state_->Apply(request, /*steps_taken=*/2, /*last_step=*/100);
  EXPECT_TRUE(state_->membership().AllWorkersFinished());
}

TEST_F(JobStateTest, EveryoneMustHearTheEndBeforeTheCoordinatorLeaves) {
  Run(1);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  state_->life().MarkDone();
  EXPECT_FALSE(state_->membership().EveryoneKnowsEnd())
      << "the server has not heard";
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_incarnation(server_.incarnation());
  EXPECT_EQ(state_->OrdersFor(request).phase(), v1::JOB_PHASE_DONE);
  EXPECT_FALSE(state_->membership().EveryoneKnowsEnd())
      << "the worker has not heard";
  request.set_role(v1::ROLE_WORKER);
  request.set_incarnation(workers_[0].incarnation());
  state_->OrdersFor(request);
  EXPECT_TRUE(state_->membership().EveryoneKnowsEnd());
}

TEST_F(JobStateTest, TheLastHeartbeatBringsTheLastFigures) {
  Run(1);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  state_->life().MarkDone();
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_incarnation(server_.incarnation());
  request.set_bytes_sent(7);
  request.set_bytes_received(8);
  request.set_peak_memory_bytes(9);
  request.set_optimizer_seconds(0.5);
  state_->OrdersFor(request);
  request.set_incarnation(server_.incarnation() + 1);  // nobody's
  request.set_bytes_sent(1000);
  state_->OrdersFor(request);
  const MemberFigures& figures = state_->membership().servers()[0].figures;
  EXPECT_EQ(figures.bytes_sent, 7u);
  EXPECT_EQ(figures.bytes_received, 8u);
  EXPECT_EQ(figures.peak_memory_bytes, 9u);
  EXPECT_EQ(figures.optimizer_seconds, 0.5);
}

TEST_F(JobStateTest, NobodyJoinsAJobThatIsOver) {
  Run(1);
  state_->life().Fail("the disk is full");
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance("late");
  const absl::Status status = state_->Register(request, now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            "the job \"digits\" is over: the disk is full");
}

}  // namespace
}  // namespace tributary
