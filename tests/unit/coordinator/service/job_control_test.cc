// SPDX-License-Identifier: Apache-2.0
// The one lock around the cores, from many threads at once and without gRPC,
// whose own threads the thread sanitizer cannot follow.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/coordinator/service/job_control_fixture.h"

namespace tributary {
namespace {

TEST(JobControlTest, ManyThreadsAgreeOnEveryStep) {
  JobControl control({.state = Options(), .clock = &Clock::Real()});
  std::thread server([&] {
    const auto place = Join(control, v1::ROLE_SERVER, "server");
    const absl::Time deadline = absl::Now() + kSoon;
    v1::JobPhase phase = v1::JOB_PHASE_WAITING;
    while (phase != v1::JOB_PHASE_DONE && absl::Now() < deadline) {
      phase = control.calls()
                  .Heartbeat(Beat(v1::ROLE_SERVER, place))
                  .value()
                  .phase();
      std::this_thread::yield();
    }
    EXPECT_EQ(phase, v1::JOB_PHASE_DONE);
  });
  std::thread saver([&] {
    v1::Plan plan;
    int64_t step = 0;
    const absl::Time deadline = absl::Now() + kSoon;
    while (!control.output().ReadyToSave(&plan, &step) &&
           absl::Now() < deadline) {
      control.output().AwaitWork(absl::Milliseconds(10));
    }
    EXPECT_EQ(step, kSteps);
    control.output().Saved(1, absl::OkStatus());
  });
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&control, i] { Work(control, i); });
  }
  std::thread watcher([&] {  // as tributary status does
    const absl::Time deadline = absl::Now() + kSoon;
    while (control.Snapshot().phase() != v1::JOB_PHASE_DONE &&
           absl::Now() < deadline) {
      EXPECT_LE(control.Totals().steps, kSteps);
    }
  });
  int64_t seen = 0;
  v1::JobPhase phase = v1::JOB_PHASE_WAITING;
  const absl::Time deadline = absl::Now() + kSoon;
  while (phase != v1::JOB_PHASE_DONE && absl::Now() < deadline) {
    const JobUpdate update = control.WaitForUpdate(absl::Seconds(1));
    for (const StepRecord& record : update.steps) {
      EXPECT_EQ(record.step, ++seen);
      EXPECT_EQ(record.samples, uint64_t{kWorkers});
    }
    phase = update.phase;
  }
  EXPECT_EQ(seen, kSteps);
  for (std::thread& worker : workers) worker.join();
  watcher.join();
  saver.join();
  server.join();
  EXPECT_TRUE(control.WaitUntilEveryoneKnowsEnd(kSoon));
  EXPECT_EQ(control.Totals().samples, uint64_t{kWorkers} * kSteps);
}

// The steps before a failure show its cause.
TEST(JobControlTest, AFailedJobTakesTheStepsThatWorkersStillReport) {
  ManualClock clock;
  JobState::Options options = Options();
  options.job.mutable_cluster()->set_workers(2);
  JobControl control({.state = options, .clock = &clock});
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  const auto one = Join(control, v1::ROLE_WORKER, "one");
  const auto other = Join(control, v1::ROLE_WORKER, "other");
  Declare(control, one);
  v1::HeartbeatRequest words = Beat(v1::ROLE_WORKER, one);
  for (int64_t step : {1, 2}) *words.add_steps() = Step(step);
  words.set_error("the gradient is not finite");
  ASSERT_EQ(control.calls().Heartbeat(words)->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_TRUE(control.WaitForUpdate(absl::ZeroDuration()).steps.empty());
  v1::HeartbeatRequest late = Beat(v1::ROLE_WORKER, other);
  late.set_incarnation(late.incarnation() + 1);
  for (int64_t step : {1, 2}) *late.add_steps() = Step(step);
  ASSERT_TRUE(control.calls().Heartbeat(late).ok());
  EXPECT_EQ(control.Totals().samples, 0u) << "of a fenced process";
  late.set_incarnation(other.incarnation());
  EXPECT_EQ(control.calls().Heartbeat(late)->phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(control.Totals().samples, 4u);
  EXPECT_EQ(control.WaitForUpdate(absl::ZeroDuration()).steps.size(), 2u);
}

// A process that ends takes its unsent reports with it. The other workers'
// reports tell how far the job has come.
TEST(JobControlTest, AFailedJobHasTheStepsThatALostWorkerDidNotReport) {
  ManualClock clock;
  JobState::Options options = Options();
  options.job.mutable_cluster()->set_workers(2);
  JobControl control({.state = options, .clock = &clock});
  Join(control, v1::ROLE_SERVER, "server");
  const auto one = Join(control, v1::ROLE_WORKER, "one");
  Join(control, v1::ROLE_WORKER, "other");
  Declare(control, one);
  v1::HeartbeatRequest request = Beat(v1::ROLE_WORKER, one);
  for (int64_t step : {1, 2}) *request.add_steps() = Step(step);
  ASSERT_TRUE(control.calls().Heartbeat(request).ok());
  EXPECT_EQ(control.Totals().steps, 0) << "the other may still report";
  control.Fail("worker-1 exited with code 0 (the job still needs it)");
  EXPECT_EQ(control.Totals().steps, 2);
  request.clear_steps();
  *request.add_steps() = Step(3);
  ASSERT_TRUE(control.calls().Heartbeat(request).ok());
  EXPECT_EQ(control.Totals().steps, 3);
  EXPECT_EQ(control.Snapshot().step(), 3);
  const std::vector<StepRecord> steps = control.LastUpdate().steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[2].lost_reports, 1u);
  EXPECT_EQ(steps[2].loss, 1);
  EXPECT_EQ(control.Totals().samples, 3u);
  EXPECT_EQ(control.Totals().final_loss, 1);
}

// A server may report a checkpoint before the workers report its step.
TEST(JobControlTest, AJobHasDoneTheStepOfItsCheckpoint) {
  ManualClock clock;
  JobState::Options options = Options();
  options.job.mutable_cluster()->set_workers(1);
  JobControl control({.state = options, .clock = &clock});
  control.AllowStart("checkpoints");
  v1::HeartbeatRequest server =
      Beat(v1::ROLE_SERVER, Join(control, v1::ROLE_SERVER, "server"));
  Declare(control, Join(control, v1::ROLE_WORKER, "worker"));
  v1::CheckpointReport* written = server.add_checkpoints();
  written->set_step(5);
  written->set_plan_epoch(1);
  written->mutable_file()->set_name("shard-0");
  ASSERT_TRUE(control.calls().Heartbeat(server).ok());
  const auto pending = control.output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(control.Snapshot().step(), 0) << "it is not complete";
  EXPECT_TRUE(
      control.output().ManifestWritten(*pending, "folder", absl::OkStatus()));
  EXPECT_EQ(control.Snapshot().step(), 5);
  EXPECT_EQ(control.Totals().steps, 5);
  control.Fail("every worker was killed");
  EXPECT_EQ(control.LastUpdate().steps.size(), 5u);
  EXPECT_EQ(control.Totals().steps, 5);
}

TEST(JobControlTest, TheServersAreAskedForACheckpointOfTheLastStep) {
  ManualClock clock;
  JobState::Options options = Options();
  options.job.mutable_cluster()->set_workers(1);
  options.job.mutable_checkpoint()->set_at_end(true);
  JobControl control({.state = options, .clock = &clock});
  control.AllowStart("checkpoints");
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  const auto worker = Join(control, v1::ROLE_WORKER, "worker");
  Declare(control, worker);
  v1::HeartbeatRequest ask = Beat(v1::ROLE_SERVER, server);
  EXPECT_EQ(control.calls().Heartbeat(ask)->cut_step(), 0);
  v1::HeartbeatRequest last = Beat(v1::ROLE_WORKER, worker);
  for (int64_t step = 1; step <= kSteps; ++step) {
    *last.add_steps() = Step(step);
  }
  last.set_begun_step(kSteps);
  last.set_finished(true);
  ASSERT_EQ(control.calls().Heartbeat(last)->steps_taken(), kSteps);
  EXPECT_EQ(control.calls().Heartbeat(ask)->cut_step(), kSteps);
  EXPECT_TRUE(control.output().CheckpointOpen());
  v1::CheckpointReport* written = ask.add_checkpoints();
  written->set_step(kSteps);
  written->set_plan_epoch(1);
  written->mutable_file()->set_name("shard-0");
  ASSERT_TRUE(control.calls().Heartbeat(ask).ok());
  const std::optional<PendingManifest> pending =
      control.output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(pending->manifest.step(), kSteps);
  EXPECT_TRUE(
      control.output().ManifestWritten(*pending, "folder", absl::OkStatus()));
  EXPECT_FALSE(control.output().CheckpointOpen());
}

// A server says what it waited for when it last looked.
TEST(JobControlTest, AServersWaitIsOverWhenAllHaveFinishedItsStep) {
  ManualClock clock;
  JobState::Options options = Options();
  options.job.mutable_cluster()->set_workers(1);
  JobControl control({.state = options, .clock = &clock});
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  const auto worker = Join(control, v1::ROLE_WORKER, "worker");
  Declare(control, worker);
  v1::HeartbeatRequest of_server = Beat(v1::ROLE_SERVER, server);
  of_server.mutable_wait()->set_text("step 3: rank 0");
  of_server.mutable_wait()->add_ranks(0);
  of_server.mutable_wait()->set_step(3);
  ASSERT_TRUE(control.calls().Heartbeat(of_server).ok());
  const auto waits = [&control] { return control.Snapshot().members(0); };
  v1::HeartbeatRequest of_worker = Beat(v1::ROLE_WORKER, worker);
  for (int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(waits().wait().text(), "step 3: rank 0") << "before " << step;
    EXPECT_EQ(waits().wait().ranks_size(), 1);
    *of_worker.add_steps() = Step(step);
    of_worker.set_begun_step(step);
    ASSERT_TRUE(control.calls().Heartbeat(of_worker).ok());
    of_worker.clear_steps();
  }
  EXPECT_EQ(waits().wait().text(), "");
  EXPECT_EQ(waits().wait().ranks_size(), 1) << "`why` takes samples";
  of_server.mutable_wait()->set_text("the job's plan");
  of_server.mutable_wait()->set_step(0);
  ASSERT_TRUE(control.calls().Heartbeat(of_server).ok());
  EXPECT_EQ(waits().wait().text(), "the job's plan");
}

TEST(JobControlTest, TheWaitForAStepIsCountedFromTheLastOne) {
  ManualClock clock;
  JobState::Options options = Options();
  options.job.mutable_cluster()->set_workers(1);
  JobControl control({.state = options, .clock = &clock});
  Join(control, v1::ROLE_SERVER, "server");
  const auto worker = Join(control, v1::ROLE_WORKER, "worker");
  clock.AdvanceMicros(1'000'000);
  EXPECT_FALSE(control.Snapshot().has_step_wait_seconds());  // not running yet
  Declare(control, worker);
  clock.AdvanceMicros(2'000'000);
  EXPECT_EQ(control.Snapshot().step_wait_seconds(), 2);
  v1::HeartbeatRequest request = Beat(v1::ROLE_WORKER, worker);
  *request.add_steps() = Step(1);
  ASSERT_TRUE(control.calls().Heartbeat(request).ok());
  EXPECT_EQ(control.Snapshot().step_wait_seconds(), 0);
  clock.AdvanceMicros(500'000);
  ASSERT_TRUE(control.calls().Heartbeat(Beat(v1::ROLE_WORKER, worker)).ok());
  EXPECT_EQ(control.Snapshot().step_wait_seconds(), 0.5);
  control.Fail("enough");
  EXPECT_FALSE(control.Snapshot().has_step_wait_seconds());
}

// A file that was written under the ended plan makes no checkpoint of the new
// plan, which comes to the same step in another way.
TEST(JobControlTest, ACheckpointIsOfOnePlan) {
  ManualClock clock;
  JobControl control({.state = Options(), .clock = &clock});
  control.AllowStart("checkpoints");
  auto server = Join(control, v1::ROLE_SERVER, "server");
  for (int i = 0; i < kWorkers; ++i) {
    const auto worker =
        Join(control, v1::ROLE_WORKER, absl::StrCat("worker-", i));
    if (i == 0) Declare(control, worker);
  }
  const auto report = [&](uint64_t plan_epoch) {
    v1::HeartbeatRequest request = Beat(v1::ROLE_SERVER, server);
    v1::CheckpointReport* written = request.add_checkpoints();
    written->set_step(5);
    written->set_plan_epoch(plan_epoch);
    written->mutable_file()->set_name("shard-0-of-1");
    ASSERT_TRUE(control.calls().Heartbeat(request).ok());
  };
  report(1);
  const std::optional<PendingManifest> first = control.output().NextManifest();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->plan_epoch, 1u);
  control.MemberLost(v1::ROLE_SERVER, 0, 0, "killed");
  server = Join(control, v1::ROLE_SERVER, "another");
  ASSERT_EQ(control.calls().GetPlan({}).value().epoch(), 2u);
  EXPECT_FALSE(
      control.output().ManifestWritten(*first, "step-5", absl::OkStatus()));
  report(1);
  EXPECT_FALSE(control.output().NextManifest().has_value());
  report(2);
  EXPECT_TRUE(control.output().NextManifest().has_value());
}

TEST(JobControlTest, ACheckpointThatCannotBeReadTakesEverybodyFurtherBack) {
  ManualClock clock;
  JobState::Options options = Options();
  options.start.step = 6;
  options.start.restore_from = "checkpoints/step-6";
  options.start.lineage = 77;
  JobControl control({.state = options, .clock = &clock});
  control.AllowStart("checkpoints");
  const auto server = Join(control, v1::ROLE_SERVER, "server");
  for (int i = 0; i < kWorkers; ++i) {
    const auto worker =
        Join(control, v1::ROLE_WORKER, absl::StrCat("worker-", i));
    if (i == 0) Declare(control, worker);
  }
  EXPECT_EQ(control.calls().GetPlan({}).value().lineage(), 77u);
  EXPECT_FALSE(control.output().TakeUnreadable().has_value());
  v1::HeartbeatRequest request = Beat(v1::ROLE_SERVER, server);
  v1::CheckpointReport* report = request.add_checkpoints();
  report->set_step(6);
  report->set_plan_epoch(2);
  report->set_error("file: byte 0");
  ASSERT_TRUE(control.calls().Heartbeat(request).ok());
  EXPECT_FALSE(control.output().TakeUnreadable().has_value()) << "of no plan";
  report->set_plan_epoch(1);
  EXPECT_EQ(control.calls().Heartbeat(request).value().checkpoints_taken(), 0u);
  const auto lost = control.output().TakeUnreadable();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->step, 6);
  EXPECT_EQ(lost->folder, "checkpoints/step-6");
  EXPECT_EQ(lost->directory, "checkpoints");
  EXPECT_EQ(lost->why, "server 0: file: byte 0");
  EXPECT_FALSE(control.output().TakeUnreadable().has_value());
  control.output().GoBack(*lost, 4, "checkpoints/step-4");
  const v1::Plan plan = control.calls().GetPlan({}).value();
  EXPECT_EQ(plan.epoch(), 2u);
  EXPECT_EQ(plan.start_step(), 4);
  EXPECT_EQ(plan.restore_from(), "checkpoints/step-4");
  control.output().GoBack(*lost, 2,
                          "checkpoints/step-2");  // about the earlier plan
  EXPECT_EQ(control.calls().GetPlan({}).value().epoch(), 2u);
  EXPECT_EQ(control.WaitForUpdate(absl::ZeroDuration()).notices[0],
            "the checkpoint of step 6 cannot be read, server 0: file: byte 0");

  // Now the report is decided, and its sender may forget it.
  EXPECT_EQ(control.calls().Heartbeat(request).value().checkpoints_taken(), 1u);
  EXPECT_FALSE(control.output().TakeUnreadable().has_value());
  // The server is lost at the same time.
  report->set_step(4);
  report->set_plan_epoch(2);
  request.set_plan_epoch(2);
  ASSERT_TRUE(control.calls().Heartbeat(request).ok());
  control.MemberLost(v1::ROLE_SERVER, 0, 0, "killed");
  const auto again = control.output().TakeUnreadable();
  ASSERT_TRUE(again.has_value());
  control.output().GoBack(*again, 2, "checkpoints/step-2");
  Join(control, v1::ROLE_SERVER, "another");
  EXPECT_EQ(control.calls().GetPlan({}).value().epoch(), 3u);
  EXPECT_EQ(control.calls().GetPlan({}).value().start_step(), 2);
}

TEST(JobControlTest, WhatGoesWrongWithAPlanThatIsOverEndsNothing) {
  ManualClock clock;
  JobControl control({.state = Options(), .clock = &clock});
  Join(control, v1::ROLE_SERVER, "server");
  for (int i = 0; i < kWorkers; ++i) {
    const auto worker =
        Join(control, v1::ROLE_WORKER, absl::StrCat("worker-", i));
    if (i == 0) Declare(control, worker);
  }
  EXPECT_TRUE(control.output().InForce(1));
  control.MemberLost(v1::ROLE_SERVER, 0, 0, "killed");
  EXPECT_FALSE(control.output().InForce(1));
  control.output().Saved(1, absl::UnavailableError("no server"));
  EXPECT_EQ(control.Snapshot().phase(), v1::JOB_PHASE_RUNNING);
  Join(control, v1::ROLE_SERVER, "another");
  EXPECT_TRUE(control.output().InForce(2));
  control.output().Saved(1, absl::UnavailableError("no server"));
  EXPECT_EQ(control.Snapshot().phase(), v1::JOB_PHASE_RUNNING);
  control.output().Saved(2, absl::DataLossError("damaged"));
  EXPECT_EQ(control.Snapshot().phase(), v1::JOB_PHASE_FAILED);
}

}  // namespace
}  // namespace tributary
