// SPDX-License-Identifier: Apache-2.0
// A checkpoint that a person asks for while the job trains.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/unit/coordinator/service/job_control_fixture.h"

namespace tributary {
namespace {

class TakeCheckpointTest : public ::testing::Test {
 protected:
  void Begin(const std::string& directory = "checkpoints",
             bool at_end = false) {
    JobControl::Options options{.state = Options(), .clock = &clock_};
    options.state.job.mutable_cluster()->set_workers(2);
    options.state.job.mutable_checkpoint()->set_at_end(at_end);
    if (period_ > 0) {
      options.state.job.mutable_strategy()
          ->mutable_parameter_server()
          ->mutable_sync()
          ->mutable_local_sgd()
          ->set_period(period_);
    }
    options.state.hold_start = true;
    control_ = std::make_unique<JobControl>(std::move(options));
    control_->AllowStart(directory);
    server_ = Join(*control_, v1::ROLE_SERVER, "server");
    for (int i = 0; i < 2; ++i) {
      workers_[i] =
          Join(*control_, v1::ROLE_WORKER, absl::StrCat("worker-", i));
      Declare(*control_, workers_[i]);
    }
  }
  absl::StatusOr<v1::TakeCheckpointResponse> Take(
      std::optional<int64_t> after = std::nullopt) {
    v1::TakeCheckpointRequest request;
    if (after) request.set_after(*after);
    return control_->calls().TakeCheckpoint(request);
  }
  // A heartbeat of a worker that has begun and finished these steps.
  v1::HeartbeatRequest Worker(int i, int64_t begun, int64_t finished) {
    v1::HeartbeatRequest request =
        tributary::Beat(v1::ROLE_WORKER, workers_[i]);
    request.set_begun_step(begun);
    for (; told_[i] < finished; ++told_[i]) {
      *request.add_steps() = Step(told_[i] + 1);
    }
    return request;
  }
  v1::HeartbeatRequest Held(int i, int64_t begun, uint64_t hold) {
    v1::HeartbeatRequest request = Worker(i, begun, begun);
    request.set_held(hold);
    return request;
  }
  v1::HeartbeatRequest Stands(int i, int64_t begun, int64_t step) {
    v1::HeartbeatRequest request = Worker(i, begun, begun);
    request.set_stands_at(step);
    return request;
  }
  v1::HeartbeatResponse Send(const v1::HeartbeatRequest& request) {
    return control_->calls().Heartbeat(request).value();
  }
  v1::HeartbeatResponse Server(int64_t cut, int64_t written = 0,
                               const std::string& error = "") {
    v1::HeartbeatRequest request = tributary::Beat(v1::ROLE_SERVER, server_);
    request.set_cut_step(cut);
    if (written > 0) {
      v1::CheckpointReport& report = *request.add_checkpoints();
      report.set_step(written);
      report.set_plan_epoch(1);
      error.empty() ? report.mutable_file()->set_name("shard")
                    : report.set_error(error);
    }
    return Send(request);
  }
  // Settles the next manifest as the coordinator's thread does.
  void WriteManifest() {
    const auto pending = control_->output().NextManifest();
    ASSERT_TRUE(pending.has_value());
    control_->output().ManifestWritten(*pending, "checkpoints/step",
                                       absl::OkStatus());
  }

  ManualClock clock_;
  std::unique_ptr<JobControl> control_;
  v1::RegisterResponse server_;
  v1::RegisterResponse workers_[2];
  int64_t told_[2] = {0, 0};
  int64_t period_ = 0;  // of local_sgd; 0: without
};

TEST_F(TakeCheckpointTest, IsOfTheHighestStepThatAnyWorkerHasBegun) {
  Begin();
  Send(Worker(0, 5, 4));
  Send(Worker(1, 4, 4));
  const auto asked = Take();
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->after(), 5);
  EXPECT_EQ(asked->step(), 0) << "not there yet";
  EXPECT_EQ(Send(Held(0, 6, 0)).hold(), 1u) << "begun before it heard";
  v1::HeartbeatResponse answer = Send(Held(0, 6, 1));
  EXPECT_EQ(answer.checkpoint_step(), 0) << "worker 1 may begin more";
  EXPECT_EQ(Take(5).status().message(),
            "waits for worker 1 to report the last step");
  EXPECT_EQ(control_->Snapshot().wait().text(), "") << "it may be over soon";
  clock_.AdvanceMicros(1'000'000);
  EXPECT_EQ(control_->Snapshot().wait().text(),
            "a checkpoint that was asked for waits for worker 1 to report the "
            "last step");
  EXPECT_EQ(control_->Snapshot().wait().seconds(), 1);
  answer = Send(Held(1, 4, 1));
  EXPECT_EQ(answer.hold(), 1u);
  EXPECT_EQ(answer.checkpoint_step(), 6);
  EXPECT_EQ(Take(5).status().message(),
            "waits for worker 0, worker 1 to finish step 6");
  // The servers copy once every worker has finished the step and waits.
  EXPECT_EQ(Send(Stands(0, 6, 6)).hold(), 1u);
  EXPECT_EQ(Server(0).cut_step(), 0);
  EXPECT_EQ(Send(Worker(1, 6, 6)).hold(), 1u)
      << "it may not know that it waits";
  EXPECT_EQ(Server(0).cut_step(), 0);
  EXPECT_EQ(Send(Stands(1, 6, 6)).hold(), 1u);
  EXPECT_EQ(Server(0).cut_step(), 6);
  EXPECT_EQ(Send(Stands(0, 6, 6)).hold(), 1u) << "the server may not have it";
  EXPECT_EQ(Take(5).status().message(),
            "waits for server 0 to copy the weights after step 6");
  Server(6);
  EXPECT_EQ(Send(Stands(0, 6, 6)).hold(), 0u);
  EXPECT_EQ(Send(Stands(1, 7, 6)).checkpoint_step(), 6) << "still told";
  EXPECT_EQ(Take(5).status().message(),
            "waits until the files are written of step 6");
  Server(6, 6);
  WriteManifest();
  const auto taken = Take(5);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->step(), 6);
  EXPECT_EQ(taken->folder(), "checkpoints/step");
  EXPECT_EQ(Take(7).status().message(),
            "waits for worker 0, worker 1 to report the last step")
      << "another one";
  EXPECT_EQ(Send(Worker(0, 7, 7)).hold(), 2u);
}

TEST_F(TakeCheckpointTest, ALateMessageAboutAnEarlierHoldDoesNotCount) {
  Begin();
  Send(Worker(0, 5, 5));
  Send(Worker(1, 5, 5));
  ASSERT_TRUE(Take().ok());
  const v1::HeartbeatRequest late = Held(0, 5, 1);
  Send(late);
  EXPECT_EQ(Send(Held(1, 5, 1)).checkpoint_step(), 5);
  Send(Stands(0, 5, 5));
  Send(Stands(1, 5, 5));
  Server(5, 5);
  WriteManifest();
  EXPECT_EQ(Send(Stands(0, 8, 5)).hold(), 0u);
  ASSERT_TRUE(Take().ok());
  Send(late);
  EXPECT_EQ(Send(Held(1, 8, 2)).checkpoint_step(), 0)
      << "worker 0 may have begun more";
  Send(Held(0, 9, 2));
  EXPECT_EQ(Send(Held(1, 8, 2)).checkpoint_step(), 9);
}

TEST_F(TakeCheckpointTest, AFailureIsToldAndTrainingGoesOn) {
  Begin();
  Send(Held(0, 5, 0));
  Send(Held(1, 5, 0));
  ASSERT_TRUE(Take().ok());
  Send(Held(0, 5, 1));
  Send(Held(1, 5, 1));
  Send(Stands(0, 5, 5));
  Send(Stands(1, 5, 5));
  Server(5, 5, "no space left on device");
  EXPECT_EQ(Send(Stands(0, 6, 5)).hold(), 0u);
  const absl::Status failed = Take(5).status();
  EXPECT_TRUE(absl::IsAborted(failed)) << failed;
  EXPECT_EQ(failed.message(),
            "the checkpoint of step 5 failed: server 0: no space left on "
            "device");
}

// Nothing holds a worker after the last step.
TEST_F(TakeCheckpointTest, InTheLastStepItIsTheOneOfTheEnd) {
  for (const bool at_end : {true, false}) {
    told_[0] = told_[1] = 0;
    Begin("checkpoints", at_end);
    Send(Held(0, kSteps - 1, 0));
    Send(Held(1, kSteps - 1, 0));
    ASSERT_TRUE(Take().ok());
    Send(Held(0, kSteps, 1));
    EXPECT_EQ(Send(Held(1, kSteps - 1, 1)).hold(), 0u) << "it goes on";
    EXPECT_EQ(Send(Held(0, kSteps, 1)).hold(), 0u) << "and is not held again";
    EXPECT_EQ(Take(kSteps - 1).status().message(),
              at_end ? "waits for the end of the job"
                     : "the job ends before another checkpoint, and leaves "
                       "none of its last step");
  }
}

// A checkpoint within a round of local_sgd is not possible.
TEST_F(TakeCheckpointTest, InTheLastRoundTheJobGoesOn) {
  period_ = kSteps - 50;
  Begin();
  Send(Held(0, kSteps - 20, 0));
  Send(Held(1, kSteps - 20, 0));
  ASSERT_TRUE(Take().ok());
  Send(Held(0, kSteps - 20, 1));
  EXPECT_EQ(Send(Held(1, kSteps - 20, 1)).hold(), 0u);
  EXPECT_EQ(Send(Held(0, kSteps - 20, 1)).hold(), 0u);
  EXPECT_TRUE(absl::IsFailedPrecondition(Take(kSteps - 20).status()));
}

TEST_F(TakeCheckpointTest, AStopTakesOver) {
  Begin();
  Send(Worker(0, 5, 5));
  Send(Worker(1, 5, 5));
  ASSERT_TRUE(Take().ok());
  control_->calls().StopJob({}).value();
  EXPECT_EQ(Send(Worker(0, 5, 5)).hold(), 0u);
  EXPECT_EQ(control_->Snapshot().phase(), v1::JOB_PHASE_STOPPING);
  EXPECT_EQ(Take().status().message(),
            "the job writes no checkpoint when it stops: checkpoint.at_end is "
            "false");
}

TEST_F(TakeCheckpointTest, IsRefusedWhereTheJobWritesNone) {
  Begin("");
  EXPECT_EQ(Take().status().message(),
            "the job writes no checkpoints; give it checkpoint.at_end or "
            "checkpoint.every_steps");
  EXPECT_TRUE(absl::IsInvalidArgument(Take(0).status()));
}

}  // namespace
}  // namespace tributary
