#include "server/coordinator/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000;

v1::JobSpec Job(int servers, int workers) {
  v1::JobSpec job;
  job.set_name("digits");
  job.mutable_cluster()->set_servers(servers);
  job.mutable_cluster()->set_workers(workers);
  job.mutable_strategy()->mutable_parameter_server()->set_bucket_bytes(1 << 20);
  return job;
}

// A job with its members, driven by hand; time stands still unless told.
class JobStateTest : public ::testing::Test {
 protected:
  void Open(int servers, int workers) {
    JobState::Options options;
    options.job = Job(servers, workers);
    options.job.mutable_cluster()->set_on_worker_loss(on_worker_loss_);
    options.loss_timeout_micros = 30 * kSecond;
    options.job_id = 42;
    options.lease_ms = 10'000;
    options.start_timeout_micros = 60 * kSecond;
    state_.emplace(options, 0);
  }

  v1::RegisterResponse Join(v1::Role role, const std::string& name,
                            const std::string& host = "") {
    v1::RegisterRequest request;
    request.set_role(role);
    request.set_instance(name);
    request.set_host(host.empty() ? absl::StrCat("node-", name) : host);
    request.set_pid(7);
    request.set_address(name + ":7000");
    return state_->Register(request, now_).value();
  }

  absl::Status Declare(const v1::RegisterResponse& worker, int64_t rows = 10,
                       int64_t total_steps = 100, double momentum = 0) {
    v1::DeclareModelRequest request;
    request.set_rank(worker.index());
    request.set_incarnation(worker.incarnation());
    v1::ParameterSpec* spec = request.add_parameters();
    spec->set_name("0.weight");
    spec->add_shape(rows);
    spec->add_shape(3);
    spec->set_running_momentum(momentum);
    request.set_total_steps(total_steps);
    request.set_steps_per_epoch(10);
    return state_->DeclareModel(request, now_);
  }

  // One server, `workers` workers, running.
  void Run(int workers) {
    Open(1, workers);
    server_ = Join(v1::ROLE_SERVER, "s");
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(Join(v1::ROLE_WORKER, absl::StrCat("w", i)));
    }
    ASSERT_TRUE(Declare(workers_[0]).ok());
    ASSERT_EQ(state_->phase(), v1::JOB_PHASE_RUNNING);
  }

  struct Beat {
    int64_t begun = 0;
    bool paused = false;
    bool finished = false;
    int64_t last_step = 0;
  };
  v1::HeartbeatResponse Send(int worker, Beat beat) {
    v1::HeartbeatRequest request;
    request.set_role(v1::ROLE_WORKER);
    request.set_index(worker);
    request.set_incarnation(workers_[worker].incarnation());
    request.set_plan_epoch(state_->plan()->epoch());
    request.set_begun_step(beat.begun);
    request.set_paused(beat.paused);
    request.set_finished(beat.finished);
    EXPECT_TRUE(state_->Renew(request, now_).ok());
    return state_->Apply(request, 0, beat.last_step);
  }
  void BeatServer() {
    v1::HeartbeatRequest request;
    request.set_role(v1::ROLE_SERVER);
    request.set_incarnation(server_.incarnation());
    ASSERT_TRUE(state_->Renew(request, now_).ok());
    state_->Apply(request, 0, 0);
  }
  // Time passes in ticks of a second, as the coordinator's thread makes them.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) state_->Tick(now_ += kSecond);
  }

  v1::WorkerLoss on_worker_loss_ = v1::WORKER_LOSS_WAIT;
  std::optional<JobState> state_;
  v1::RegisterResponse server_;
  std::vector<v1::RegisterResponse> workers_;
  int64_t now_ = 0;
};

// ---- beginning

TEST_F(JobStateTest, PlanIsPublishedWhenAllAreThereAndTheModelIsDeclared) {
  Open(2, 1);
  Join(v1::ROLE_SERVER, "s0");
  EXPECT_EQ(state_->Missing(), "server 1, worker 0, the model");
  const auto worker = Join(v1::ROLE_WORKER, "w0");
  ASSERT_TRUE(Declare(worker).ok());
  EXPECT_EQ(state_->plan(), nullptr);
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_WAITING);
  Join(v1::ROLE_SERVER, "s1");
  ASSERT_NE(state_->plan(), nullptr);
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_RUNNING);
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

TEST_F(JobStateTest, ModelThatNoPlanCanBeMadeOfIsRefused) {
  Open(1, 1);
  const auto worker = Join(v1::ROLE_WORKER, "w");
  EXPECT_EQ(Declare(worker, /*rows=*/0).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Declare(worker, 10, /*total_steps=*/0).code(),
            absl::StatusCode::kInvalidArgument);
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
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_WAITING);
  EXPECT_EQ(state_->Missing(), "server 0, worker 0, the model");
  EXPECT_EQ(Join(v1::ROLE_SERVER, "t").index(), 0u);
}

TEST_F(JobStateTest, MembersThatNeverComeFailTheJob) {
  Open(1, 1);
  Join(v1::ROLE_SERVER, "s");
  Pass(60);
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->message(),
            "waited 60.0 s in vain for server 0, worker 0, the model");
}

// ---- losing members

TEST_F(JobStateTest, LostWorkerFailsAJobThatSaysSoByNameStepAndSeconds) {
  on_worker_loss_ = v1::WORKER_LOSS_FAIL;
  Run(2);
  Send(1, {.begun = 12});
  for (int i = 0; i < 10; ++i) {
    Pass(1);
    Send(0, {.begun = 13});
    BeatServer();
  }
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_RUNNING);
  Pass(1);
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->message(),
            "worker 1 (node-w1, pid 7) was lost at step 12: no heartbeat for "
            "11.0 s");
}

TEST_F(JobStateTest, LostWorkersPlaceWaitsAndThenFailsTheJob) {
  Run(2);
  Send(1, {.begun = 12});
  const auto pass = [this](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      Pass(1);
      Send(0, {.begun = 13});
      BeatServer();
    }
  };
  pass(11);
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre("worker 1 (node-w1, pid 7) was lost at step 12: no "
                          "heartbeat for 11.0 s"));
  pass(5);
  EXPECT_EQ(state_->WaitsFor(now_),
            "waiting for a process in the place of worker 1 (node-w1, pid 7), "
            "lost at step 12, 5.0 s ago");
  pass(25);
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->message(),
            "worker 1 (node-w1, pid 7) was lost at step 12, and nobody has "
            "taken its place for 30.0 s");
}

TEST_F(JobStateTest, AnotherProcessTakesALostWorkersPlaceAndThePlanStays) {
  Run(2);
  EXPECT_EQ(state_->MemberLost(v1::ROLE_WORKER, 1, /*pid=*/7, "killed", now_),
            LossVerdict::kReplace);
  const auto before = workers_[1].incarnation();
  workers_[1] = Join(v1::ROLE_WORKER, "other");
  EXPECT_EQ(workers_[1].index(), 1u);
  EXPECT_GT(workers_[1].incarnation(), before);
  EXPECT_EQ(state_->WaitsFor(now_), "");
  EXPECT_EQ(state_->plan()->epoch(), 1u);
  EXPECT_EQ(state_->workers_lost(), 1u);
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre(HasSubstr("was lost at step 0: killed"),
                          "worker 1 (node-other, pid 7) takes its place"));
}

TEST_F(JobStateTest, AShrinkingJobGivesALostRankToTheLeastLoadedWorker) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(3);
  EXPECT_EQ(state_->MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_),
            LossVerdict::kGoesOn);
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre(0));
  EXPECT_THAT(Send(2, {}).adopt_ranks(), ElementsAre());
  workers_[0] = Join(v1::ROLE_WORKER, "adopter");
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre());
  EXPECT_EQ(state_->plan()->epoch(), 1u);
}

// All processes of containers are number 1 of their own: here 7.
TEST_F(JobStateTest, ProcessesOfDifferentHostsAreDifferent) {
  on_worker_loss_ = v1::WORKER_LOSS_SHRINK;
  Run(4);
  state_->MemberLost(v1::ROLE_WORKER, 0, 7, "killed", now_);
  EXPECT_THAT(Send(1, {}).adopt_ranks(), ElementsAre(0));
  workers_[0] = Join(v1::ROLE_WORKER, "adopter", "node-w1");
  state_->MemberLost(v1::ROLE_WORKER, 3, 7, "killed", now_);
  EXPECT_THAT(Send(2, {}).adopt_ranks(), ElementsAre(3));
}

TEST_F(JobStateTest, ALostServerTakesEverybodyBackToTheCheckpoint) {
  Run(2);
  Send(0, {.begun = 25});
  state_->SetRestorePoint(20, "/checkpoints/step-20");
  EXPECT_EQ(state_->MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_),
            LossVerdict::kReplace);
  EXPECT_EQ(state_->plan()->epoch(), 1u) << "the place is empty";
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->plan()->start_step(), 20);
  EXPECT_EQ(state_->plan()->restore_from(), "/checkpoints/step-20");
  EXPECT_EQ(state_->plan()->servers(0), "t:7000");
  EXPECT_EQ(state_->rollbacks(), 1u);
  EXPECT_THAT(state_->TakeNotices(),
              ElementsAre(HasSubstr("server 0 (node-s, pid 7) was lost at step "
                                    "25: killed"),
                          HasSubstr("takes its place"),
                          "everybody goes back to step 20, checkpoint "
                          "/checkpoints/step-20"));
}

TEST_F(JobStateTest, WhatIsSaidOfAnEarlierPlanEndsNothing) {
  Run(1);
  v1::HeartbeatRequest late;
  late.set_role(v1::ROLE_WORKER);
  late.set_incarnation(workers_[0].incarnation());
  late.set_plan_epoch(1);
  late.set_finished(true);
  state_->MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->Apply(late, 0, 100).plan_epoch(), 2u);
  EXPECT_FALSE(state_->AllWorkersFinished());
}

TEST_F(JobStateTest, AServerThatComesBackToItsAddressReplacesItself) {
  Run(1);
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_instance("s again");
  request.set_host("node-s");
  request.set_pid(8);
  request.set_address("s:7000");
  ASSERT_TRUE(state_->Register(request, now_).ok());
  EXPECT_EQ(state_->plan()->epoch(), 2u);
  EXPECT_EQ(state_->servers_lost(), 1u);
}

TEST_F(JobStateTest, FinishedWorkerMayLeaveButIsWantedAfterAServersLoss) {
  Run(1);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_TRUE(state_->AllWorkersFinished());
  for (int i = 0; i < 20; ++i) {
    Pass(1);
    BeatServer();
  }
  EXPECT_EQ(state_->workers_lost(), 0u);
  state_->MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  EXPECT_FALSE(state_->AllWorkersFinished());
  EXPECT_EQ(state_->workers_lost(), 1u);
}

TEST_F(JobStateTest, CoordinatorThatWasAwayItselfBlamesNobody) {
  Run(1);
  state_->Tick(now_ = kSecond);
  state_->Tick(now_ = 300 * kSecond);  // stopped and continued
  EXPECT_EQ(state_->workers_lost() + state_->servers_lost(), 0u);
  Pass(11);
  EXPECT_EQ(state_->workers_lost() + state_->servers_lost(), 2u)
      << "later it may again";
}

TEST_F(JobStateTest, ReportedErrorFailsTheJobAtOnceAndTheFirstReasonStays) {
  Run(2);
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_index(1);
  request.set_incarnation(workers_[1].incarnation());
  request.set_error("train.gz ends in the middle of an image");
  state_->Apply(request, 0, 0);
  state_->Fail("something later");
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state_->message(),
            "worker 1 (node-w1, pid 7) failed: train.gz ends in the middle of "
            "an image");
}

// ---- the end

TEST_F(JobStateTest, JobIsDoneWhenWorkersHaveFinishedAndWeightsAreSaved) {
  Run(2);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_FALSE(state_->AllWorkersFinished());
  Send(1, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_TRUE(state_->AllWorkersFinished());
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_RUNNING);
  state_->MarkDone();
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_DONE);
}

TEST_F(JobStateTest, WorkerThatFinishesTooEarlyFailsTheJob) {
  Run(1);
  Send(0, {.begun = 99, .finished = true, .last_step = 99});
  EXPECT_EQ(state_->message(),
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
  EXPECT_FALSE(state_->AllWorkersFinished());
  state_->Apply(request, /*steps_taken=*/2, /*last_step=*/100);
  EXPECT_TRUE(state_->AllWorkersFinished());
}

TEST_F(JobStateTest, EveryoneMustHearTheEndBeforeTheCoordinatorLeaves) {
  Run(1);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  state_->MarkDone();
  EXPECT_FALSE(state_->EveryoneKnowsEnd()) << "the server has not heard";
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_incarnation(server_.incarnation());
  EXPECT_EQ(state_->Farewell(request).phase(), v1::JOB_PHASE_DONE);
  EXPECT_FALSE(state_->EveryoneKnowsEnd()) << "the worker has not heard";
  request.set_role(v1::ROLE_WORKER);
  request.set_incarnation(workers_[0].incarnation());
  state_->Farewell(request);
  EXPECT_TRUE(state_->EveryoneKnowsEnd());
}

TEST_F(JobStateTest, TheLastHeartbeatBringsTheLastFigures) {
  Run(1);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  state_->MarkDone();
  v1::HeartbeatRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_incarnation(server_.incarnation());
  request.set_bytes_sent(7);
  request.set_bytes_received(8);
  request.set_peak_memory_bytes(9);
  request.set_optimizer_seconds(0.5);
  request.set_error("too late");
  state_->Farewell(request);
  request.set_incarnation(server_.incarnation() + 1);  // nobody's
  request.set_bytes_sent(1000);
  state_->Farewell(request);
  const v1::HeartbeatRequest& latest = state_->membership().servers()[0].latest;
  EXPECT_EQ(latest.bytes_sent(), 7u);
  EXPECT_EQ(latest.bytes_received(), 8u);
  EXPECT_EQ(latest.peak_memory_bytes(), 9u);
  EXPECT_EQ(latest.optimizer_seconds(), 0.5);
  EXPECT_EQ(latest.error(), "");
}

TEST_F(JobStateTest, NobodyJoinsAJobThatIsOver) {
  Run(1);
  state_->Fail("the disk is full");
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance("late");
  const absl::Status status = state_->Register(request, now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            "the job \"digits\" is over: the disk is full");
}

// ---- stopping

TEST_F(JobStateTest, AllStopAtTheHighestStepThatAnyHasBegun) {
  Run(3);
  Send(0, {.begun = 5});
  Send(1, {.begun = 6});
  Send(2, {.begun = 5});
  state_->RequestStop();
  EXPECT_FALSE(Send(0, {.begun = 5, .paused = true}).has_stop_step());
  EXPECT_FALSE(Send(1, {.begun = 6, .paused = true}).has_stop_step());
  EXPECT_EQ(Send(2, {.begun = 5, .paused = true}).stop_step(), 6);
  EXPECT_EQ(Send(0, {.begun = 5, .paused = true}).stop_step(), 6);
}

TEST_F(JobStateTest, StepBegunBetweenRequestAndPauseCounts) {
  Run(2);
  Send(0, {.begun = 5});
  Send(1, {.begun = 5});
  state_->RequestStop();
  Send(0, {.begun = 5, .paused = true});
  // Worker 1 had not heard yet and began two more.
  EXPECT_FALSE(Send(1, {.begun = 7, .paused = false}).has_stop_step());
  EXPECT_EQ(Send(1, {.begun = 7, .paused = true}).stop_step(), 7);
}

TEST_F(JobStateTest, LateCopyOfAnOldHeartbeatTurnsNothingBack) {
  Run(2);
  state_->RequestStop();
  Send(0, {.begun = 9, .paused = true});
  Send(0, {.begun = 3, .paused = false});  // sent before, delivered after
  EXPECT_EQ(Send(1, {.begun = 8, .paused = true}).stop_step(), 9);
}

TEST_F(JobStateTest, StopStepNeverChangesOnceItIsKnown) {
  Run(1);
  state_->RequestStop();
  EXPECT_EQ(Send(0, {.begun = 4, .paused = true}).stop_step(), 4);
  state_->RequestStop();
  EXPECT_EQ(Send(0, {.begun = 5, .paused = true}).stop_step(), 4);
}

TEST_F(JobStateTest, FinishedWorkerCountsAsPausedAtItsEnd) {
  Run(2);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  Send(1, {.begun = 99});
  state_->RequestStop();
  EXPECT_EQ(Send(1, {.begun = 99, .paused = true}).stop_step(), 100);
  Send(1, {.begun = 100, .finished = true, .last_step = 100});
  EXPECT_TRUE(state_->AllWorkersFinished());
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_STOPPING);
}

TEST_F(JobStateTest, StopBeforeAnyStepStopsAtZero) {
  Run(1);
  state_->RequestStop();
  const v1::HeartbeatResponse orders = Send(0, {.begun = 0, .paused = true});
  ASSERT_TRUE(orders.has_stop_step());
  EXPECT_EQ(orders.stop_step(), 0);
  Send(0, {.begun = 0, .finished = true, .last_step = 0});
  EXPECT_TRUE(state_->AllWorkersFinished());
}

TEST_F(JobStateTest, WorkerMustStopAtTheCommonStep) {
  Run(1);
  state_->RequestStop();
  Send(0, {.begun = 4, .paused = true});
  Send(0, {.begun = 4, .finished = true, .last_step = 3});
  EXPECT_EQ(state_->message(),
            "worker 0 (node-w0, pid 7) finished after step 3 of 4");
}

// The steps that were reported before the rollback are made again first.
TEST_F(JobStateTest, AStopAfterARollbackIsNoEarlierThanAnyStepBegunBefore) {
  Run(2);
  Send(0, {.begun = 12});
  state_->RequestStop();
  state_->MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  Send(0, {.begun = 0, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 0, .paused = true}).stop_step(), 12);
  Send(0, {.begun = 12, .finished = true, .last_step = 12});
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_STOPPING) << state_->message();
}

// A heartbeat of the earlier plan that comes after the rollback brings reports.
TEST_F(JobStateTest, ALateHeartbeatOfTheEarlierPlanCountsForTheStop) {
  Run(1);
  state_->RequestStop();
  state_->MemberLost(v1::ROLE_SERVER, 0, 7, "killed", now_);
  Join(v1::ROLE_SERVER, "t");
  ASSERT_EQ(state_->plan()->epoch(), 2u);
  v1::HeartbeatRequest late;
  late.set_role(v1::ROLE_WORKER);
  late.set_incarnation(workers_[0].incarnation());
  late.set_plan_epoch(1);
  late.set_begun_step(10);
  EXPECT_FALSE(state_->Apply(late, 9, 9).has_stop_step());
  EXPECT_EQ(Send(0, {.begun = 0, .paused = true}).stop_step(), 10);
}

TEST_F(JobStateTest, AStopThatIsSettledIsKeptForASuccessor) {
  Run(2);
  state_->RequestStop();
  Send(0, {.begun = 6, .paused = true});
  EXPECT_EQ(Send(1, {.begun = 4, .paused = true}).stop_step(), 6);
  Send(0, {.begun = 6, .finished = true, .last_step = 6});
  const v1::CoordinatorState kept = state_->Save();
  const JobState::Options options = state_->options();
  state_.emplace(options, kept, now_);
  EXPECT_EQ(state_->final_step(), 6);
  EXPECT_EQ(Send(1, {.begun = 4, .paused = true}).stop_step(), 6);
}

// Who has finished before the stop was settled has made all steps, and nobody
// may hear of it again.
TEST_F(JobStateTest, ASuccessorStopsNoEarlierThanWhoHasFinished) {
  Run(2);
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  const v1::CoordinatorState kept = state_->Save();
  const JobState::Options options = state_->options();
  state_.emplace(options, kept, now_);
  state_->RequestStop();
  EXPECT_EQ(Send(1, {.begun = 97, .paused = true}).stop_step(), 100);
}

TEST_F(JobStateTest, StopBeforeTheJobRunsEndsIt) {
  Open(1, 1);
  state_->RequestStop();
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_TRUE(state_->stop_requested());
  EXPECT_THAT(state_->message(), HasSubstr("stopped before the first step"));
}

TEST_F(JobStateTest, WorkerLostWhileStoppingFailsTheJob) {
  on_worker_loss_ = v1::WORKER_LOSS_FAIL;
  Run(2);
  state_->RequestStop();
  for (int i = 0; i < 11; ++i) {
    Pass(1);
    BeatServer();
    Send(0, {.begun = 1, .paused = true});
  }
  EXPECT_EQ(state_->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(state_->message(), HasSubstr("worker 1"));
}

}  // namespace
}  // namespace tributary
