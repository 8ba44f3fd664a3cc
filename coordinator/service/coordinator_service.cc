// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator_service.h"

#include <string>
#include <utility>

#include "common/status/printable.h"
#include "common/status/status_macros.h"
#include "common/wire/grpc_status.h"
#include "common/wire/identity/role_name.h"
#include "spdlog/spdlog.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

template <typename T>
absl::Status Give(absl::StatusOr<T> result, T* response) {
  if (!result.ok()) return result.status();
  *response = *std::move(result);
  return absl::OkStatus();
}

class CoordinatorServiceImpl final : public v1::CoordinatorService::Service {
 public:
  CoordinatorServiceImpl(JobControl* control,
                         std::shared_ptr<const CallGuard> guard)
      : control_(control), guard_(std::move(guard)) {}

  grpc::Status SubmitJob(grpc::ServerContext* context,
                         const v1::SubmitJobRequest* request,
                         v1::SubmitJobResponse*) override {
    return Admitted(context, "SubmitJob", *request, [&](const Caller&) {
      return control_->calls().SubmitJob();
    });
  }
  grpc::Status Register(grpc::ServerContext* context,
                        const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    return Admitted(context, "Register", *request, [&](const Caller& caller) {
      TRIBUTARY_RETURN_IF_ERROR(caller.MayRegisterAs(request->role()));
      TRIBUTARY_RETURN_IF_ERROR(
          Give(control_->calls().Register(*request), response));
      if (!caller.unchecked && request->arithmetic().empty()) {
        spdlog::info("registered {} {}: {}", RoleName(request->role()),
                     response->index(), caller.Name());
      }
      return absl::OkStatus();
    });
  }
  grpc::Status DeclareModel(grpc::ServerContext* context,
                            const v1::DeclareModelRequest* request,
                            v1::DeclareModelResponse*) override {
    return ForRank(context, "DeclareModel", *request,
                   [&] { return control_->calls().DeclareModel(*request); });
  }
  grpc::Status GetPlan(grpc::ServerContext* context,
                       const v1::GetPlanRequest* request,
                       v1::Plan* response) override {
    return Admitted(context, "GetPlan", *request, [&](const Caller& caller) {
      return Give(control_->calls().GetPlan(*request, caller.place), response);
    });
  }
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    return Admitted(context, "Heartbeat", *request, [&](const Caller& caller) {
      TRIBUTARY_RETURN_IF_ERROR(caller.SpeaksFor(
          request->role(), request->index(), request->incarnation()));
      if (!request->error().empty() && !caller.unchecked) {
        spdlog::warn("{} {} reports that it fails: {}",
                     RoleName(request->role()), request->index(),
                     caller.Name());
      }
      return Give(control_->calls().Heartbeat(*request), response);
    });
  }
  grpc::Status ReportEvaluation(
      grpc::ServerContext* context, const v1::ReportEvaluationRequest* request,
      v1::ReportEvaluationResponse* response) override {
    return ForRank(context, "ReportEvaluation", *request, [&] {
      return Give(control_->calls().ReportEvaluation(*request), response);
    });
  }
  grpc::Status AwaitEvaluation(grpc::ServerContext* context,
                               const v1::AwaitEvaluationRequest* request,
                               v1::AwaitEvaluationResponse* response) override {
    return ForRank(context, "AwaitEvaluation", *request, [&] {
      return Give(control_->calls().AwaitEvaluation(*request), response);
    });
  }
  grpc::Status Exchange(grpc::ServerContext* context,
                        const v1::ExchangeRequest* request,
                        v1::ExchangeResponse* response) override {
    return ForRank(context, "Exchange", *request, [&] {
      return Give(control_->calls().Exchange(*request), response);
    });
  }
  grpc::Status PutWeights(grpc::ServerContext* context,
                          const v1::PutWeightsRequest* request,
                          v1::PutWeightsResponse*) override {
    return ForRank(context, "PutWeights", *request,
                   [&] { return control_->calls().Put(*request); });
  }
  grpc::Status GetJobStatus(grpc::ServerContext* context,
                            const v1::JobStatusRequest* request,
                            v1::JobStatusResponse* response) override {
    return Admitted(context, "GetJobStatus", *request, [&](const Caller&) {
      *response = control_->Snapshot();
      return absl::OkStatus();
    });
  }
  grpc::Status StopJob(grpc::ServerContext* context,
                       const v1::StopJobRequest* request,
                       v1::StopJobResponse* response) override {
    return Admitted(context, "StopJob", *request, [&](const Caller& caller) {
      if (!caller.unchecked) spdlog::info("asked to stop: {}", caller.Name());
      return Give(control_->calls().StopJob(*request), response);
    });
  }
  grpc::Status TakeCheckpoint(grpc::ServerContext* context,
                              const v1::TakeCheckpointRequest* request,
                              v1::TakeCheckpointResponse* response) override {
    return Admitted(context, "TakeCheckpoint", *request, [&](const Caller&) {
      return Give(control_->calls().TakeCheckpoint(*request), response);
    });
  }

 private:
  // Runs `act` if the caller may call the method.
  template <typename Act>
  grpc::Status Admitted(grpc::ServerContext* context, const char* name,
                        const google::protobuf::Message& request,
                        const Act& act) const {
    const std::string method = std::string("/") +
                               v1::CoordinatorService::service_full_name() +
                               "/" + name;
    const absl::StatusOr<Caller> caller =
        guard_->Admit(*context, method, request.ByteSizeLong());
    return ToGrpcStatus(caller.ok() ? act(*caller) : caller.status());
  }
  // Like Admitted, for a request in the name of a rank, which must be the
  // caller's.
  template <typename Request, typename Act>
  grpc::Status ForRank(grpc::ServerContext* context, const char* name,
                       const Request& request, const Act& act) const {
    return Admitted(context, name, request, [&](const Caller& caller) {
      TRIBUTARY_RETURN_IF_ERROR(caller.SpeaksFor(
          v1::ROLE_WORKER, request.rank(), request.incarnation()));
      return act();
    });
  }

  JobControl* const control_;
  const std::shared_ptr<const CallGuard> guard_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCoordinatorService(
    JobControl* control, std::shared_ptr<const CallGuard> guard) {
  return std::make_unique<CoordinatorServiceImpl>(control, std::move(guard));
}

}  // namespace tributary
