// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/member/member.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "coordinator/job/final_weights.h"
#include "coordinator/service/coordinator.h"
#include "tests/testing/soon.h"
#include "tributary/v1/grpc_services.pb.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {

using testing::kSoon;
inline constexpr int64_t kTotalSteps = 6;

inline v1::JobSpec Job(int servers, int workers) {
  v1::JobSpec job;
  job.set_name("digits");
  job.mutable_cluster()->set_servers(servers);
  job.mutable_cluster()->set_workers(workers);
  job.mutable_training()->mutable_loss()->mutable_cross_entropy();
  job.mutable_strategy()->mutable_parameter_server()->set_bucket_bytes(1 << 20);
  return job;
}

inline Declaration Model() {
  return {.parameters = {{"0.weight", {40, 100}}, {"0.bias", {40}}},
          .total_steps = kTotalSteps,
          .steps_per_epoch = 3};
}

// Answers Pull with weights that count up over the whole model: element i of
// parameter p is 10000 p + i.
class CountingServer final : public v1::ParameterService::Service {
 public:
  CountingServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // The first `bad_answers` answers are damaged, or errors for lack of room.
  void Serve(const v1::Plan& plan, int bad_answers = 0) {
    plan_ = plan;
    bad_answers_ = bad_answers;
  }
  int bad_answers_left() const { return bad_answers_; }

  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request,
                    v1::PullResponse* response) override {
    if (request->address().job_id() != plan_.job_id()) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "other job");
    }
    const PartitionPlan cut = MakePartitionPlan(plan_).value();
    const Block& block =
        cut.blocks(request->address().shard())[request->address().block()];
    std::vector<std::vector<float>> tensors;
    std::vector<const float*> pointers;
    for (size_t p = 0; p < cut.parameters().size(); ++p) {
      tensors.emplace_back(cut.parameters()[p].size());
      std::iota(tensors[p].begin(), tensors[p].end(), 10000.0f * p);
      pointers.push_back(tensors[p].data());
    }
    std::vector<float> payload(block.size);
    PartitionPlan::Gather(block, pointers, payload.data());
    response->set_version(request->min_version());
    response->set_payload(payload.data(), block.bytes());
    response->set_crc32c(Crc32c(payload.data(), block.bytes()));
    SignHeader(response);
    if (bad_answers_ == 0) return grpc::Status::OK;
    switch (bad_answers_-- % 3) {
      case 0:
        return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room");
      case 1:
        response->set_crc32c(response->crc32c() ^ 1);
        break;
      default:
        response->set_version(response->version() ^ 1);
    }
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  v1::Plan plan_;
  std::atomic<int> bad_answers_{0};
  std::unique_ptr<grpc::Server> server_;
};

class CoordinatorTest : public ::testing::Test {
 protected:
  void Start(int servers, int workers) {
    Coordinator::Options options;
    options.job = Job(servers, workers);
    options.savers.weights = [this](const FinalWeights& weights) {
      weights_ = weights;
      if (full_for_ > 0) {
        --full_for_;
        return absl::ResourceExhaustedError("no space left on device");
      }
      return save_status_;
    };
    options.timeouts.loss = loss_timeout_;
    options.calls.reflection = true;
    coordinator_ = Coordinator::Start(std::move(options)).value();
  }

  std::unique_ptr<Member> Join(v1::Role role, const std::string& address = "") {
    Member::Options options;
    options.coordinator = coordinator_->address();
    options.role = role;
    options.address = address;
    return Member::Join(options).value();
  }

  // One step of a worker's life, without the work.
  static void DoStep(Member& member, int64_t step) {
    v1::StepReport report;
    report.set_step(step);
    report.set_epoch(1 + (step - 1) / 3);
    report.set_loss_sum(static_cast<double>(10 - step));
    report.set_samples(2);
    report.set_step_seconds(0.01);
    member.ReportStep(report);
  }

  // Announces that no reports follow, and waits until all have arrived.
  static void Finish(Member& member) {
    member.Follow([](MemberState& state, int64_t /*now_micros*/) {
      state.Finish();
      return state.finish_acknowledged() || !state.end().ok();
    });
    EXPECT_TRUE(member.end().ok()) << member.end();
  }

  // Trains until the end or the stop; returns the last step.
  static int64_t TrainToEnd(Member& member) {
    int64_t step = 0;
    while (step < kTotalSteps) {
      const absl::Status status = member.BeginStep(step + 1);
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsCancelled(status)) << status;
        break;
      }
      DoStep(member, ++step);
    }
    v1::EvaluationPart part;
    part.set_samples(4);
    part.set_values(4);
    part.set_correct(3);
    EXPECT_TRUE(member.results().ReportEvaluation(step, 1, part).ok());
    Finish(member);
    return step;
  }

  // Returns all updates until the job is over.
  JobUpdate Collect() {
    JobUpdate all;
    const absl::Time deadline = absl::Now() + kSoon;
    while (all.phase != v1::JOB_PHASE_DONE &&
           all.phase != v1::JOB_PHASE_FAILED && absl::Now() < deadline) {
      JobUpdate update =
          coordinator_->control().WaitForUpdate(absl::Seconds(1));
      for (auto& step : update.steps) all.steps.push_back(step);
      for (auto& e : update.evaluations) all.evaluations.push_back(e);
      for (auto& notice : update.notices) all.notices.push_back(notice);
      all.phase = update.phase;
      all.message = update.message;
    }
    return all;
  }

  int full_for_ = 0;  // how many attempts to save the weights fail
  absl::Duration loss_timeout_ = absl::Seconds(120);
  absl::Status save_status_;
  FinalWeights weights_;
  CountingServer store_[2];
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace tributary
