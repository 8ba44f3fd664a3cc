// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "coordinator/service/job_control.h"
#include "tests/testing/soon.h"

namespace tributary {

inline constexpr int kWorkers = 3;
inline constexpr int64_t kSteps = 200;
using testing::kSoon;

inline JobState::Options Options() {
  JobState::Options options;
  options.job.mutable_cluster()->set_servers(1);
  options.job.mutable_cluster()->set_workers(kWorkers);
  options.job.mutable_training()->mutable_loss()->mutable_mse();
  return options;
}

inline v1::RegisterResponse Join(JobControl& control, v1::Role role,
                                 const std::string& name) {
  v1::RegisterRequest request;
  request.set_role(role);
  request.set_instance(name);
  request.set_address("127.0.0.1:7000");
  return control.calls().Register(request).value();
}

inline v1::HeartbeatRequest Beat(v1::Role role,
                                 const v1::RegisterResponse& place) {
  v1::HeartbeatRequest request;
  request.set_role(role);
  request.set_index(place.index());
  request.set_incarnation(place.incarnation());
  request.set_plan_epoch(1);
  request.set_job_id(place.job_id());
  request.set_term(place.term());
  return request;
}

inline void Declare(JobControl& control, const v1::RegisterResponse& place) {
  v1::DeclareModelRequest model;
  model.set_rank(place.index());
  model.set_incarnation(place.incarnation());
  v1::ParameterSpec* spec = model.add_parameters();
  spec->set_name("0.bias");
  spec->add_shape(3);
  model.set_total_steps(kSteps);
  model.set_steps_per_epoch(kSteps);
  ASSERT_TRUE(control.calls().DeclareModel(model).ok());
}

inline v1::StepReport Step(int64_t step) {
  v1::StepReport report;
  report.set_step(step);
  report.set_epoch(1);
  report.set_samples(1);
  report.set_loss_sum(1);
  return report;
}

// A worker's life: joins, declares, sends its steps one heartbeat each.
inline void Work(JobControl& control, int number) {
  const auto place =
      Join(control, v1::ROLE_WORKER, absl::StrCat("worker-", number));
  Declare(control, place);
  v1::GetPlanRequest plan;
  plan.set_wait_ms(10'000);
  ASSERT_TRUE(control.calls().GetPlan(plan).ok());
  for (int64_t step = 1; step <= kSteps; ++step) {
    v1::HeartbeatRequest request = Beat(v1::ROLE_WORKER, place);
    *request.add_steps() = Step(step);
    request.set_begun_step(step);
    request.set_finished(step == kSteps);
    ASSERT_EQ(control.calls().Heartbeat(request).value().steps_taken(), 1u);
  }
  v1::ReportEvaluationRequest evaluation;
  evaluation.set_rank(place.index());
  evaluation.set_incarnation(place.incarnation());
  evaluation.set_step(kSteps);
  ASSERT_TRUE(control.calls().ReportEvaluation(evaluation).ok());
  // The worker hears the end by its heartbeats.
  const absl::Time deadline = absl::Now() + kSoon;
  v1::JobPhase phase = v1::JOB_PHASE_RUNNING;
  while (phase != v1::JOB_PHASE_DONE && absl::Now() < deadline) {
    phase =
        control.calls().Heartbeat(Beat(v1::ROLE_WORKER, place)).value().phase();
    std::this_thread::yield();
  }
  EXPECT_EQ(phase, v1::JOB_PHASE_DONE);
}

}  // namespace tributary
