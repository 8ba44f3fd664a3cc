// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/core/job_state.h"

namespace tributary {

inline constexpr int64_t kSecond = 1'000'000;

inline v1::JobSpec Job(int servers, int workers) {
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
    if (servers == 0) options.job.mutable_strategy()->mutable_all_reduce();
    if (error_feedback_) {
      options.job.mutable_strategy()
          ->mutable_parameter_server()
          ->set_error_feedback(true);
    }
    if (backup_workers_ > 0) {
      options.job.mutable_strategy()
          ->mutable_parameter_server()
          ->mutable_sync()
          ->mutable_bsp()
          ->set_backup_workers(backup_workers_);
    }
    if (period_ > 0) {
      options.job.mutable_strategy()
          ->mutable_parameter_server()
          ->mutable_sync()
          ->mutable_local_sgd()
          ->set_period(period_);
    }
    if (data_parallel_) options.job.mutable_strategy()->mutable_data_parallel();
    options.job.mutable_checkpoint()->set_at_end(true);
    options.job.mutable_checkpoint()->set_every_steps(checkpoint_every_);
    options.host = host_;
    options.loss_timeout_micros = 30 * kSecond;
    options.job_id = 42;
    options.lease_ms = 10'000;
    options.start_timeout_micros = 60 * kSecond;
    options.start.data_checksum = restored_data_;
    options.start.manifest = restored_;
    options.start.step = start_step_;
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
                       int64_t total_steps = 100, double momentum = 0,
                       uint32_t data_checksum = 0,
                       uint32_t evaluation_checksum = 0) {
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
    request.set_data_checksum(data_checksum);
    request.set_evaluation_checksum(evaluation_checksum);
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
    ASSERT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  }

  // Workers alone, running as one group.
  void RunGroup(int workers) {
    Open(0, workers);
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(Join(v1::ROLE_WORKER, absl::StrCat("w", i)));
    }
    ASSERT_TRUE(Declare(workers_[0]).ok());
    ASSERT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  }

  struct Beat {
    int64_t begun = 0;
    bool paused = false;
    bool finished = false;
    int64_t last_step = 0;
    std::string broken_group = "";
    bool program_ended = false;
    std::string leaving = "";
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
    request.set_program_ended(beat.program_ended);
    request.set_leaving(beat.leaving);
    if (!beat.broken_group.empty()) {
      request.set_broken_group_epoch(state_->plan()->epoch());
      request.set_broken_group(beat.broken_group);
    }
    EXPECT_TRUE(state_
                    ->Renew(request.role(), request.index(),
                            request.incarnation(), now_)
                    .ok());
    return state_->Apply(request, 0, beat.last_step);
  }
  void BeatServer() {
    v1::HeartbeatRequest request;
    request.set_role(v1::ROLE_SERVER);
    request.set_incarnation(server_.incarnation());
    ASSERT_TRUE(state_
                    ->Renew(request.role(), request.index(),
                            request.incarnation(), now_)
                    .ok());
    state_->Apply(request, 0, 0);
  }
  // Time passes in ticks of a second, as the coordinator's thread makes them.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) state_->Tick(now_ += kSecond);
  }

  // The server and worker 1 are heard meanwhile.
  void LetTheLeaseOfWorker0RunOut() {
    for (int i = 0; i < 11; ++i) {
      Pass(1);
      BeatServer();
      Send(1, {});
    }
    ASSERT_EQ(state_->losses().workers_lost(), 1u);
  }

  v1::WorkerLoss on_worker_loss_ = v1::WORKER_LOSS_WAIT;
  uint32_t restored_data_ = 0;
  std::shared_ptr<const v1::CheckpointManifest> restored_;
  int64_t start_step_ = 0;
  bool error_feedback_ = false;
  int backup_workers_ = 0;
  int period_ = 0;  // of local_sgd; 0: another policy
  bool data_parallel_ = false;
  std::string host_;  // the coordinator's
  int64_t checkpoint_every_ = 0;
  std::optional<JobState> state_;
  v1::RegisterResponse server_;
  std::vector<v1::RegisterResponse> workers_;
  int64_t now_ = 0;
};

}  // namespace tributary
