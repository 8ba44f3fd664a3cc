// SPDX-License-Identifier: Apache-2.0
// A job that a person stops, and what its status says about waits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status/cause.h"
#include "tests/unit/coordinator/service/job_control_fixture.h"

namespace tributary {
namespace {

// A job of one worker, which has its place.
struct SmallJob {
  explicit SmallJob(bool at_end) : clock(), control(OptionsOf(at_end)) {
    control.AllowStart("checkpoints");
    server = Join(control, v1::ROLE_SERVER, "server");
    worker = Join(control, v1::ROLE_WORKER, "worker");
  }
  JobControl::Options OptionsOf(bool at_end) {
    JobControl::Options options{.state = Options(), .clock = &clock};
    options.state.job.mutable_cluster()->set_workers(1);
    options.state.job.mutable_checkpoint()->set_at_end(at_end);
    options.state.hold_start = true;
    return options;
  }
  v1::StopJobRequest Request(bool checkpoint) {
    v1::StopJobRequest request;
    request.set_reason("maintenance");
    request.set_checkpoint(checkpoint);
    return request;
  }

  ManualClock clock;
  JobControl control;
  v1::RegisterResponse server;
  v1::RegisterResponse worker;
};

TEST(JobStopTest, StopJobEndsTheJobAtTheNextCommonStep) {
  SmallJob job(/*at_end=*/true);
  Declare(job.control, job.worker);
  const auto answer = job.control.calls().StopJob(job.Request(true));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->message(),
            "the job ends after the next step that every worker reaches, and "
            "leaves a checkpoint of it");
  EXPECT_EQ(job.control.Snapshot().phase(), v1::JOB_PHASE_STOPPING);
  EXPECT_TRUE(job.control.calls().StopJob(job.Request(true)).ok()) << "again";
  const std::vector<std::string> notices =
      job.control.WaitForUpdate(absl::ZeroDuration()).notices;
  ASSERT_EQ(notices.size(), 1u) << "said once";
  EXPECT_EQ(notices[0],
            "stopping at the next common step, as asked: maintenance");
  v1::HeartbeatRequest last = Beat(v1::ROLE_WORKER, job.worker);
  *last.add_steps() = Step(1);
  last.set_begun_step(1);
  last.set_paused(true);
  EXPECT_EQ(job.control.calls().Heartbeat(last)->stop_step(), 1);
  EXPECT_TRUE(job.control.Totals().stopped);
  job.control.output().Saved(1, absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      job.control.calls().StopJob(job.Request(false)).status()));
}

TEST(JobStopTest, StopJobRefusesACheckpointThatTheJobWouldNotLeave) {
  SmallJob job(/*at_end=*/false);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      job.control.calls().StopJob(job.Request(true)).status()))
      << "before the first step";
  Declare(job.control, job.worker);
  const absl::Status refused =
      job.control.calls().StopJob(job.Request(true)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(refused.message(),
            "the job writes no checkpoint when it stops: checkpoint.at_end is "
            "false");
  EXPECT_EQ(job.control.Snapshot().phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_TRUE(job.control.calls().StopJob(job.Request(false)).ok());
}

TEST(JobStopTest, StopJobBeforeTheFirstPlanEndsTheJobAtOnce) {
  SmallJob job(/*at_end=*/true);
  const auto answer = job.control.calls().StopJob(job.Request(false));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->message(),
            "stopped before the first step, while waiting for the model");
  EXPECT_TRUE(job.control.Totals().stopped_unbegun);
  EXPECT_EQ(job.control.Snapshot().phase(), v1::JOB_PHASE_FAILED);
}

TEST(JobStopTest, TheStatusSaysWhatTheJobWaitsForAndSinceWhen) {
  SmallJob job(/*at_end=*/true);
  job.clock.AdvanceMicros(3'000'000);
  v1::JobStatusResponse status = job.control.Snapshot();
  EXPECT_EQ(status.wait().text(), "waiting for the model");
  EXPECT_EQ(status.wait().seconds(), 3);
  Declare(job.control, job.worker);
  status = job.control.Snapshot();
  EXPECT_EQ(status.wait().text(), "");
  EXPECT_EQ(status.wait().seconds(), 0);
  EXPECT_EQ(status.job_id(), 1u);
  job.control.SetWaits(WaitFor("waiting for room"));
  job.clock.AdvanceMicros(500'000);
  job.control.SetWaits(WaitFor("waiting for more room"));
  EXPECT_EQ(job.control.Snapshot().wait().text(), "waiting for more room");
  EXPECT_EQ(job.control.Snapshot().wait().seconds(), 0.5);
  job.control.MemberLost(v1::ROLE_WORKER, 0, 0, "killed");
  job.clock.AdvanceMicros(2'000'000);
  status = job.control.Snapshot();
  EXPECT_NE(status.wait().text().find("in the place of worker 0"),
            std::string::npos);
  EXPECT_EQ(status.wait().seconds(), 2);
}

TEST(JobStopTest, TheStatusHasEachWorkersLastStepAndTheFailedCheckpoint) {
  SmallJob job(/*at_end=*/true);
  Declare(job.control, job.worker);
  EXPECT_FALSE(job.control.Snapshot().members(1).has_last_step());
  v1::HeartbeatRequest beat = Beat(v1::ROLE_WORKER, job.worker);
  for (int64_t step = 1; step <= 2; ++step) {
    v1::StepReport& report = *beat.add_steps();
    report = Step(step);
    report.set_compute_seconds(0.5 * static_cast<double>(step));
    report.add_spans()->set_end_micros(7);
  }
  ASSERT_TRUE(job.control.calls().Heartbeat(beat).ok());
  const v1::StepReport last = job.control.Snapshot().members(1).last_step();
  EXPECT_EQ(last.step(), 2);
  EXPECT_EQ(last.compute_seconds(), 1);
  EXPECT_EQ(last.spans_size(), 0);
  v1::HeartbeatRequest server = Beat(v1::ROLE_SERVER, job.server);
  v1::CheckpointReport& report = *server.add_checkpoints();
  report.set_step(2);
  report.set_plan_epoch(1);
  report.set_error("f: No space left on device");
  ASSERT_TRUE(job.control.calls().Heartbeat(server).ok());
  EXPECT_EQ(job.control.Snapshot().checkpoint_error(),
            "server 0: f: No space left on device");
}

}  // namespace
}  // namespace tributary
