// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/intake/job_intake.h"

#include <grpcpp/resource_quota.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/host/address.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "spdlog/spdlog.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

constexpr absl::Duration kIntakeAnswers = absl::Seconds(2);
// No call waits. Callers for whom no thread is left try again.
constexpr int kIntakeThreads = 64;

grpc::Status NotYet() {
  return {grpc::StatusCode::UNAVAILABLE,
          "the coordinator waits for the job's program to say what it trains"};
}

}  // namespace

class JobIntake::Service final : public v1::CoordinatorService::Service {
 public:
  explicit Service(ProgramJobSource source) : source_(std::move(source)) {}

  grpc::Status SubmitJob(grpc::ServerContext*,
                         const v1::SubmitJobRequest* request,
                         v1::SubmitJobResponse*) override {
    absl::MutexLock lock(&mu_);
    if (job_) return grpc::Status::OK;  // the first request counts
    absl::StatusOr<v1::JobSpec> job = ParseProgramJob(
        source_, {request->settings().begin(), request->settings().end()});
    if (!job.ok()) {
      spdlog::warn("the program's job is refused: {}",
                   std::string(job.status().message()));
      return ToGrpcStatus(job.status());
    }
    job_ = *std::move(job);
    return grpc::Status::OK;
  }
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest*,
                        v1::RegisterResponse*) override {
    return NotYet();
  }
  grpc::Status DeclareModel(grpc::ServerContext*,
                            const v1::DeclareModelRequest*,
                            v1::DeclareModelResponse*) override {
    return NotYet();
  }
  grpc::Status GetPlan(grpc::ServerContext*, const v1::GetPlanRequest*,
                       v1::Plan*) override {
    return NotYet();
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest*,
                         v1::HeartbeatResponse*) override {
    return NotYet();
  }
  grpc::Status ReportEvaluation(grpc::ServerContext*,
                                const v1::ReportEvaluationRequest*,
                                v1::ReportEvaluationResponse*) override {
    return NotYet();
  }
  grpc::Status Exchange(grpc::ServerContext*, const v1::ExchangeRequest*,
                        v1::ExchangeResponse*) override {
    return NotYet();
  }
  grpc::Status PutWeights(grpc::ServerContext*, const v1::PutWeightsRequest*,
                          v1::PutWeightsResponse*) override {
    return NotYet();
  }
  grpc::Status GetJobStatus(grpc::ServerContext*, const v1::JobStatusRequest*,
                            v1::JobStatusResponse*) override {
    return NotYet();
  }

  std::optional<v1::JobSpec> Await(absl::Duration timeout) {
    absl::MutexLock lock(&mu_);
    const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return job_.has_value();
    };
    AwaitFor(&mu_, absl::Condition(&known), timeout);
    return job_;
  }

 private:
  const ProgramJobSource source_;
  absl::Mutex mu_;
  std::optional<v1::JobSpec> job_ ABSL_GUARDED_BY(mu_);
};

JobIntake::JobIntake(ProgramJobSource source)
    : service_(std::make_unique<Service>(std::move(source))) {}

absl::StatusOr<std::unique_ptr<JobIntake>> JobIntake::Start(
    const std::string& listen, ProgramJobSource source) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(listen));
  std::unique_ptr<JobIntake> intake(new JobIntake(std::move(source)));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  LimitConnections(&builder);
  grpc::ResourceQuota quota("intake");
  quota.SetMaxThreads(kIntakeThreads);
  builder.SetResourceQuota(quota);
  builder.RegisterService(intake->service_.get());
  intake->server_ = builder.BuildAndStart();
  if (intake->server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", listen,
                     ": the port is taken or the address is not of this "
                     "machine"));
  }
  intake->address_ =
      absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  return intake;
}

JobIntake::~JobIntake() {
  if (server_ == nullptr) return;
  server_->Shutdown(DeadlineAfter(kIntakeAnswers));
  server_->Wait();
}

std::optional<v1::JobSpec> JobIntake::Await(absl::Duration timeout) {
  return service_->Await(timeout);
}

}  // namespace tributary
