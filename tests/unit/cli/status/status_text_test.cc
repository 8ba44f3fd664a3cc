// SPDX-License-Identifier: Apache-2.0
#include "cli/status/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(StatusTextTest, RunningJobShowsWhoIsThereAndWhatWaitsForWhom) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_step(50);
  status.set_total_steps(200);
  status.set_epoch(2.5);
  status.set_loss(0.5);
  status.set_samples_per_second(1200);
  v1::MemberStatus* server = status.add_members();
  server->set_role(v1::ROLE_SERVER);
  server->set_host("node-a");
  server->set_address("node-a:7071");
  server->set_alive(true);
  server->set_step(50);
  server->set_seconds_since_heartbeat(0.1);
  server->set_peak_memory_bytes(3 << 20);
  server->set_device("cpu");
  server->mutable_wait()->set_text("step 51: rank 1");
  v1::MemberStatus* worker = status.add_members();
  worker->set_role(v1::ROLE_WORKER);
  worker->set_index(1);
  worker->set_host("node-b");
  worker->set_pid(77);
  worker->set_step(49);
  worker->set_seconds_since_heartbeat(12.25);
  EXPECT_EQ(
      StatusText(status),
      "digits: running\n"
      "  step 50/200 (25%), epoch 2.5, loss 0.5000, 1.2k samples/s\n"
      "  server 0    alive  step 50       heard 0.1 s ago  peak    3.0 MiB  "
      "node-a:7071  cpu  waits for step 51: rank 1\n"
      "  worker 1    lost   step 49       heard 12.2 s ago  peak        0 B  "
      "node-b pid 77\n");
}

TEST(StatusTextTest, AProgramWithoutSamplesShowsItsSteps) {
  v1::JobStatusResponse status;
  status.set_name("mlp");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_step(50);
  status.set_samples_per_second(96);
  for (int rank = 0; rank < 2; ++rank) {
    v1::MemberStatus* worker = status.add_members();
    worker->set_role(v1::ROLE_WORKER);
    worker->set_index(rank);
    worker->mutable_last_step()->set_samples(1);
  }
  const auto shows = [&](const std::string& rate) {
    return StatusText(status).find(rate) != std::string::npos;
  };
  EXPECT_TRUE(shows(", 48 steps/s\n"));
  status.mutable_members(1)->mutable_last_step()->set_samples(8);
  EXPECT_TRUE(shows(", 96 samples/s\n"));
}

// Members' sentences arrive with their heartbeats and can be out of date.
TEST(StatusTextTest, WhatIsPastIsNotShownAsAWait) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_step(50);
  v1::MemberStatus* server = status.add_members();
  server->set_role(v1::ROLE_SERVER);
  server->mutable_wait()->set_text("step 51: rank 1");
  server->mutable_wait()->add_ranks(1);
  v1::MemberStatus* worker = status.add_members();
  worker->set_role(v1::ROLE_WORKER);
  worker->set_index(1);
  worker->set_host("node-b");
  worker->set_step(50);
  const std::string waits = "waits for worker 1";
  EXPECT_NE(StatusText(status).find(waits), std::string::npos);
  server->mutable_wait()
      ->clear_text();  // by the coordinator, which knows the step
  EXPECT_EQ(StatusText(status).find(waits), std::string::npos);
  server->mutable_wait()->set_text("step 51: rank 1");
  worker->set_step(51);
  EXPECT_EQ(StatusText(status).find(waits), std::string::npos);
  worker->set_step(50);
  worker->mutable_wait()->set_text("the job's plan");
  worker->set_finished(true);
  EXPECT_EQ(StatusText(status).find("waits"), std::string::npos);
  worker->set_finished(false);
  status.set_phase(v1::JOB_PHASE_DONE);
  EXPECT_EQ(StatusText(status).find(waits), std::string::npos);
}

TEST(StatusTextTest, ALateWorkerIsNamedOnceWithAllThatWaitForIt) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_step(50);
  for (int i = 0; i < 2; ++i) {
    v1::MemberStatus* server = status.add_members();
    server->set_role(v1::ROLE_SERVER);
    server->set_index(i);
    server->mutable_wait()->set_text("step 51: rank 1");
    server->mutable_wait()->add_ranks(1);
  }
  v1::MemberStatus* worker = status.add_members();
  worker->set_role(v1::ROLE_WORKER);
  worker->set_index(1);
  worker->set_alive(true);
  worker->set_step(50);
  worker->set_seconds_since_heartbeat(4.25);
  EXPECT_EQ(StatusText(status),
            "digits: running\n"
            "  step 50, 0 samples/s\n"
            "  server 0    not here\n"
            "  server 1    not here\n"
            "  worker 1    not here\n"
            "  step 51 waits for worker 1 (alive, its last step is 50, heard "
            "4.2 s ago): server 0, server 1\n");
  worker = status.add_members();
  worker->set_role(v1::ROLE_WORKER);
  worker->set_step(90);  // it may wait for step 91, and need not wait at all
  EXPECT_THAT(StatusText(status),
              ::testing::HasSubstr(
                  "  worker 1 is waited for (alive, its last reported step is "
                  "50, heard 4.2 s ago): server 0, server 1\n"));
}

TEST(StatusTextTest, CheckpointsAndRollbacksHaveALine) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_checkpoint_every_steps(20);
  EXPECT_EQ(StatusText(status),
            "digits: running\n  no checkpoint yet, one every 20 steps\n");
  status.set_checkpoint_step(40);
  status.set_seconds_since_checkpoint(12.25);
  status.set_checkpoint_failures(1);
  status.set_rollbacks(2);
  EXPECT_EQ(StatusText(status),
            "digits: running\n"
            "  checkpoint of step 40, 12.2 s ago; 1 failed; rollbacks: 2\n");
}

TEST(StatusTextTest, OnATerminalEveryLineIsClearedBehindItsText) {
  EXPECT_EQ(RedrawnInPlace("a\nbc\n"), "\x1b[Ha\x1b[K\nbc\x1b[K\n\x1b[J");
}

TEST(StatusTextTest, WaitingJobSaysForWhom) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_WAITING);
  status.set_message("waiting for server 0, the model");
  status.add_members()->set_role(v1::ROLE_SERVER);
  EXPECT_EQ(StatusText(status),
            "digits: waiting for server 0, the model\n"
            "  server 0    not here\n");
}

TEST(StatusTextTest, FailedJobSaysWhy) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_FAILED);
  status.set_message("worker 1 was lost");
  EXPECT_EQ(StatusText(status), "digits: failed, worker 1 was lost\n");
}

}  // namespace
}  // namespace tributary
