// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "coordinator/service/job_control.h"

namespace tributary {

inline constexpr int64_t kFewSteps = 3;
inline constexpr int64_t kSecond = 1'000'000;

// A job of two workers, with a server or without, and a disk that fails as long
// as `full` says.
class JobSavingTest : public ::testing::Test {
 protected:
  explicit JobSavingTest(bool servers = true) {
    options_.state.job.mutable_cluster()->set_servers(servers ? 1 : 0);
    options_.state.job.mutable_cluster()->set_workers(2);
    options_.state.job.mutable_training()->mutable_loss()->mutable_mse();
    if (!servers) options_.state.job.mutable_strategy()->mutable_all_reduce();
    options_.clock = &clock_;
    options_.save = [this](const v1::CoordinatorState& state) {
      ++tries_;
      if (full_) return absl::ResourceExhaustedError("no space");
      kept_ = state;
      return absl::OkStatus();
    };
    options_.save_evaluations =
        [this](const std::vector<EvaluationRecord>& evaluations) {
          waiting_.insert(waiting_.end(), evaluations.begin(),
                          evaluations.end());
          if (full_) return absl::ResourceExhaustedError("no space");
          kept_evaluations_.insert(kept_evaluations_.end(), waiting_.begin(),
                                   waiting_.end());
          waiting_.clear();
          return absl::OkStatus();
        };
    control_ = std::make_unique<JobControl>(options_);
  }

  absl::StatusOr<v1::RegisterResponse> Join(v1::Role role,
                                            const std::string& name) {
    v1::RegisterRequest request;
    request.set_role(role);
    request.set_instance(name);
    request.set_address("127.0.0.1:7000");
    return control_->calls().Register(request);
  }

  v1::HeartbeatRequest Beat(v1::Role role, const v1::RegisterResponse& place) {
    v1::HeartbeatRequest request;
    request.set_role(role);
    request.set_index(place.index());
    request.set_incarnation(place.incarnation());
    request.set_plan_epoch(1);
    request.set_job_id(place.job_id());
    request.set_term(control_->term());
    return request;
  }

  v1::HeartbeatRequest Finished(const v1::RegisterResponse& place) {
    v1::HeartbeatRequest request = Beat(v1::ROLE_WORKER, place);
    for (int64_t step = 1; step <= kFewSteps; ++step) {
      v1::StepReport* report = request.add_steps();
      report->set_step(step);
      report->set_epoch(1);
      report->set_samples(2);
      report->set_loss_sum(1);
    }
    request.set_begun_step(kFewSteps);
    request.set_finished(true);
    return request;
  }

  // Lets a server, if there is one, and the workers join; then the plan is out.
  void Begin() {
    if (options_.state.job.cluster().servers() > 0) {
      server_ = Join(v1::ROLE_SERVER, "server").value();
    }
    for (int i = 0; i < 2; ++i) {
      workers_[i] = Join(v1::ROLE_WORKER, absl::StrCat("worker-", i)).value();
    }
    v1::DeclareModelRequest model;
    model.set_rank(0);
    model.set_incarnation(workers_[0].incarnation());
    v1::ParameterSpec* spec = model.add_parameters();
    spec->set_name("0.bias");
    spec->add_shape(3);
    model.set_total_steps(kFewSteps);
    model.set_steps_per_epoch(kFewSteps);
    ASSERT_TRUE(control_->calls().DeclareModel(model).ok());
    ASSERT_TRUE(control_->calls().GetPlan({}).ok());
  }

  // Lets another coordinator go on with the job. `recorded`: from the metrics.
  void TakeOver(const RecordedSteps& recorded = {}) {
    const v1::CoordinatorState kept = kept_;
    options_.predecessor.state = &kept;
    options_.predecessor.recorded = recorded;
    options_.predecessor.evaluations = kept_evaluations_;
    waiting_.clear();
    control_ = std::make_unique<JobControl>(options_);
    options_.predecessor.state = nullptr;
  }

  // Lets every worker report its part of the evaluation after `step`, with
  // `correct` correct samples.
  absl::Status Evaluate(int64_t step, uint64_t correct = 0) {
    absl::Status status;
    for (const v1::RegisterResponse& worker : workers_) {
      v1::ReportEvaluationRequest request;
      request.set_rank(worker.index());
      request.set_incarnation(worker.incarnation());
      request.set_step(step);
      request.set_epoch(1);
      request.set_term(control_->term());
      request.mutable_part()->set_samples(5);
      request.mutable_part()->set_values(5);
      request.mutable_part()->set_correct(correct);
      status.Update(control_->calls().ReportEvaluation(request).status());
    }
    return status;
  }

  void Tick(int64_t seconds = 1) {
    clock_.AdvanceMicros(seconds * kSecond);
    control_->Tick(absl::ZeroDuration());
  }

  absl::Status PutWeights(
      int64_t step,
      const std::function<void(v1::PutWeightsRequest*)>& damage = nullptr) {
    v1::PutWeightsRequest request;
    request.set_rank(0);
    request.set_incarnation(workers_[0].incarnation());
    request.set_plan_epoch(1);
    request.set_step(step);
    request.set_payload(std::string(12, '\0'));
    request.set_crc32c(
        Crc32c(request.payload().data(), request.payload().size()));
    SignHeader(&request);
    if (damage) damage(&request);
    return control_->calls().Put(request);
  }

  ManualClock clock_;
  JobControl::Options options_;
  bool full_ = false;
  int tries_ = 0;
  v1::CoordinatorState kept_;
  // Evaluations that are on the disk, and those that are not yet.
  std::vector<EvaluationRecord> kept_evaluations_, waiting_;
  std::unique_ptr<JobControl> control_;
  v1::RegisterResponse server_, workers_[2];
};

}  // namespace tributary
