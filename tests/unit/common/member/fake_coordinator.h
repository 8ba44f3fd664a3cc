// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/member/coordinator_client.h"
#include "tests/testing/soon.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {

// Answers the few calls of a coordinator that these tests make.
class FakeCoordinator final : public v1::CoordinatorService::Service {
 public:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::unique_ptr<CoordinatorClient> Client(
      const Clock* clock = &Clock::Real()) const {
    return CoordinatorClient::Create({.address = address(), .clock = clock})
        .value();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // Another coordinator takes over: evaluations of earlier terms are refused.
  void TakeOver(uint64_t term) {
    absl::MutexLock lock(&mu_);
    term_ = term;
  }
  // Sets the step up to which it reports evaluations as saved.
  void SetSaved(int64_t step) {
    absl::MutexLock lock(&mu_);
    saved_step_ = step;
  }
  // Fails every report for lack of threads.
  void Refuse(bool refuse) {
    absl::MutexLock lock(&mu_);
    refuse_ = refuse;
  }
  // Called once, when the next report has been taken but not answered yet.
  void BeforeAnswer(std::function<void()> call) {
    absl::MutexLock lock(&mu_);
    before_answer_ = std::move(call);
  }
  // Called with every heartbeat, before it is answered.
  void OnHeartbeat(std::function<void(const v1::HeartbeatRequest&)> call) {
    absl::MutexLock lock(&mu_);
    on_heartbeat_ = std::move(call);
  }
  // {term, step} of each report that was taken.
  using Taken = std::vector<std::pair<uint64_t, int64_t>>;
  Taken taken() const {
    absl::MutexLock lock(&mu_);
    return taken_;
  }
  // Waits until a report of an earlier term is refused; false if none is soon.
  bool AwaitAborted() const {
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&aborted_), testing::kSoon);
  }

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest*,
                        v1::RegisterResponse* response) override {
    response->set_incarnation(1);
    response->set_heartbeat_ms(1000);
    response->set_lease_ms(3000);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*,
                         const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse*) override {
    std::function<void(const v1::HeartbeatRequest&)> call;
    {
      absl::MutexLock lock(&mu_);
      call = on_heartbeat_;
    }
    if (call) call(*request);
    return grpc::Status::OK;
  }
  grpc::Status ReportEvaluation(
      grpc::ServerContext*, const v1::ReportEvaluationRequest* request,
      v1::ReportEvaluationResponse* response) override {
    std::function<void()> before_answer;
    {
      absl::MutexLock lock(&mu_);
      if (refuse_) {
        return {grpc::StatusCode::RESOURCE_EXHAUSTED, "no thread is left"};
      }
      if (request->term() < term_) {
        aborted_ = true;
        return {grpc::StatusCode::ABORTED, "an earlier term"};
      }
      taken_.emplace_back(request->term(), request->step());
      if (saved_step_ >= 0) response->set_saved_step(saved_step_);
      before_answer = std::exchange(before_answer_, nullptr);
    }
    if (before_answer) before_answer();
    return grpc::Status::OK;
  }
  grpc::Status GetJobStatus(grpc::ServerContext*, const v1::JobStatusRequest*,
                            v1::JobStatusResponse* response) override {
    response->set_message(std::string(message_bytes_, 'x'));
    return grpc::Status::OK;
  }
  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest*,
                         v1::SubmitJobResponse*) override {
    return grpc::Status::OK;
  }
  // Holds the job for ever.
  grpc::Status TakeCheckpoint(grpc::ServerContext*,
                              const v1::TakeCheckpointRequest*,
                              v1::TakeCheckpointResponse*) override {
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "it waits for worker 1"};
  }
  void SetMessageBytes(size_t bytes) { message_bytes_ = bytes; }

 private:
  int port_ = 0;
  size_t message_bytes_ = 0;
  mutable absl::Mutex mu_;
  uint64_t term_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t saved_step_ ABSL_GUARDED_BY(mu_) = -1;
  bool refuse_ ABSL_GUARDED_BY(mu_) = false;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> before_answer_ ABSL_GUARDED_BY(mu_);
  std::function<void(const v1::HeartbeatRequest&)> on_heartbeat_
      ABSL_GUARDED_BY(mu_);
  Taken taken_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tributary
