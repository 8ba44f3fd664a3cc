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
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "coordinator/core/members/membership.h"
#include "spdlog/spdlog.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

constexpr absl::Duration kIntakeAnswers = absl::Seconds(2);
// No call waits. Callers that find no free thread try again.
constexpr int kIntakeThreads = 64;

constexpr char kNotYet[] =
    "the coordinator waits for the job's program to say what it trains";
constexpr int kIntakeCalls = 64;  // of a connection
constexpr char kWaitsForProgram[] =
    "waiting for the job's program to say what it trains";

}  // namespace

class JobIntake::Service final : public v1::CoordinatorService::Service {
 public:
  Service(ProgramJobSource source, std::shared_ptr<const CallGuard> guard)
      : source_(std::move(source)),
        guard_(std::move(guard)),
        since_(SteadyNow()) {}

  grpc::Status SubmitJob(grpc::ServerContext* context,
                         const v1::SubmitJobRequest* request,
                         v1::SubmitJobResponse*) override {
    if (grpc::Status status =
            Admit(context, "SubmitJob", request->ByteSizeLong());
        !status.ok()) {
      return status;
    }
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
  grpc::Status Register(grpc::ServerContext* context,
                        const v1::RegisterRequest*,
                        v1::RegisterResponse*) override {
    return NotYet(context, "Register");
  }
  grpc::Status DeclareModel(grpc::ServerContext* context,
                            const v1::DeclareModelRequest*,
                            v1::DeclareModelResponse*) override {
    return NotYet(context, "DeclareModel");
  }
  grpc::Status GetPlan(grpc::ServerContext* context, const v1::GetPlanRequest*,
                       v1::Plan*) override {
    return NotYet(context, "GetPlan");
  }
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         const v1::HeartbeatRequest*,
                         v1::HeartbeatResponse*) override {
    return NotYet(context, "Heartbeat");
  }
  grpc::Status ReportEvaluation(grpc::ServerContext* context,
                                const v1::ReportEvaluationRequest*,
                                v1::ReportEvaluationResponse*) override {
    return NotYet(context, "ReportEvaluation");
  }
  grpc::Status AwaitEvaluation(grpc::ServerContext* context,
                               const v1::AwaitEvaluationRequest*,
                               v1::AwaitEvaluationResponse*) override {
    return NotYet(context, "AwaitEvaluation");
  }
  grpc::Status Exchange(grpc::ServerContext* context,
                        const v1::ExchangeRequest*,
                        v1::ExchangeResponse*) override {
    return NotYet(context, "Exchange");
  }
  grpc::Status PutWeights(grpc::ServerContext* context,
                          const v1::PutWeightsRequest*,
                          v1::PutWeightsResponse*) override {
    return NotYet(context, "PutWeights");
  }
  grpc::Status GetJobStatus(grpc::ServerContext* context,
                            const v1::JobStatusRequest*,
                            v1::JobStatusResponse* response) override {
    if (grpc::Status status = Admit(context, "GetJobStatus"); !status.ok()) {
      return status;
    }
    response->set_name(source_.name);
    response->set_phase(v1::JOB_PHASE_WAITING);
    response->set_message(kWaitsForProgram);
    v1::Wait* const wait = response->mutable_wait();
    wait->set_cause(v1::CAUSE_PROGRAM);
    wait->set_text(kWaitsForProgram);
    wait->set_seconds(absl::ToDoubleSeconds(SteadyNow() - since_));
    return grpc::Status::OK;
  }
  grpc::Status TakeCheckpoint(grpc::ServerContext* context,
                              const v1::TakeCheckpointRequest*,
                              v1::TakeCheckpointResponse*) override {
    if (grpc::Status status = Admit(context, "TakeCheckpoint"); !status.ok()) {
      return status;
    }
    return {grpc::StatusCode::FAILED_PRECONDITION,
            "the job has not begun a step, so it has nothing to save"};
  }
  grpc::Status StopJob(grpc::ServerContext* context,
                       const v1::StopJobRequest* request,
                       v1::StopJobResponse* response) override {
    if (grpc::Status status = Admit(context, "StopJob"); !status.ok()) {
      return status;
    }
    if (request->checkpoint()) {
      return {grpc::StatusCode::FAILED_PRECONDITION,
              "the job has not begun a step, so it has nothing to save"};
    }
    absl::MutexLock lock(&mu_);
    if (job_) {
      return {grpc::StatusCode::UNAVAILABLE,
              "the program's job is about to begin; try again"};
    }
    if (!stop_reason_) stop_reason_ = ShortSentence(request->reason());
    response->set_message(
        "the job ends before its program has said what it trains");
    return grpc::Status::OK;
  }

  std::optional<v1::JobSpec> Await(absl::Duration timeout) {
    absl::MutexLock lock(&mu_);
    const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return job_.has_value() || stop_reason_.has_value();
    };
    AwaitFor(&mu_, absl::Condition(&known), timeout);
    return job_;
  }
  std::optional<std::string> stop_reason() const {
    absl::MutexLock lock(&mu_);
    return stop_reason_;
  }

 private:
  grpc::Status Admit(grpc::ServerContext* context, const char* name,
                     size_t message_bytes = 0) const {
    return ToGrpcStatus(
        guard_
            ->Admit(
                *context,
                absl::StrCat("/", v1::CoordinatorService::service_full_name(),
                             "/", name),
                message_bytes)
            .status());
  }
  // There is no job yet, so nobody has a ticket: such calls are refused, too.
  grpc::Status NotYet(grpc::ServerContext* context, const char* name) const {
    const grpc::Status status = Admit(context, name);
    return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, kNotYet)
                       : status;
  }

  const ProgramJobSource source_;
  const std::shared_ptr<const CallGuard> guard_;
  const absl::Duration since_;
  mutable absl::Mutex mu_;
  std::optional<v1::JobSpec> job_ ABSL_GUARDED_BY(mu_);
  std::optional<std::string> stop_reason_ ABSL_GUARDED_BY(mu_);
};

JobIntake::JobIntake(ProgramJobSource source,
                     std::shared_ptr<const CallGuard> guard)
    : service_(std::make_unique<Service>(std::move(source), std::move(guard))) {
}

absl::StatusOr<std::unique_ptr<JobIntake>> JobIntake::Start(
    const std::string& listen, ProgramJobSource source,
    std::shared_ptr<const CallGuard> guard) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<PeerPort> port,
                             PeerPort::Listen(listen, guard));
  std::unique_ptr<JobIntake> intake(
      new JobIntake(std::move(source), std::move(guard)));
  grpc::ServerBuilder builder;
  port->AddTo(&builder, kIntakeCalls);
  grpc::ResourceQuota quota("intake");
  quota.SetMaxThreads(kIntakeThreads);
  builder.SetResourceQuota(quota);
  builder.RegisterService(intake->service_.get());
  intake->server_ = builder.BuildAndStart();
  if (intake->server_ == nullptr) {
    return absl::InternalError(absl::StrCat("cannot serve on ", listen));
  }
  port->Start();
  intake->address_ =
      absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port->port());
  intake->port_ = std::move(port);
  return intake;
}

JobIntake::~JobIntake() {
  if (server_ == nullptr) return;
  port_->Stop();
  EndCalls();
}

void JobIntake::EndCalls() {
  server_->Shutdown(DeadlineAfter(kIntakeAnswers));
  server_->Wait();
  server_ = nullptr;
}

ListeningSockets JobIntake::HandOver() {
  ListeningSockets sockets = port_->Release();
  EndCalls();
  return sockets;
}

std::optional<v1::JobSpec> JobIntake::Await(absl::Duration timeout) {
  return service_->Await(timeout);
}

std::optional<std::string> JobIntake::stop_reason() const {
  return service_->stop_reason();
}

}  // namespace tributary
