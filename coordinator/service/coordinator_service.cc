// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator_service.h"

#include <utility>

#include "common/wire/grpc_status.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

template <typename T>
grpc::Status Answer(absl::StatusOr<T> result, T* response) {
  if (!result.ok()) return ToGrpcStatus(result.status());
  *response = *std::move(result);
  return grpc::Status::OK;
}

class CoordinatorServiceImpl final : public v1::CoordinatorService::Service {
 public:
  explicit CoordinatorServiceImpl(JobControl* control) : control_(control) {}

  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest*,
                         v1::SubmitJobResponse*) override {
    return ToGrpcStatus(control_->SubmitJob());
  }
  grpc::Status Register(grpc::ServerContext*,
                        const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    return Answer(control_->Register(*request), response);
  }
  grpc::Status DeclareModel(grpc::ServerContext*,
                            const v1::DeclareModelRequest* request,
                            v1::DeclareModelResponse*) override {
    return ToGrpcStatus(control_->DeclareModel(*request));
  }
  grpc::Status GetPlan(grpc::ServerContext*, const v1::GetPlanRequest* request,
                       v1::Plan* response) override {
    return Answer(control_->GetPlan(*request), response);
  }
  grpc::Status Heartbeat(grpc::ServerContext*,
                         const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    return Answer(control_->Heartbeat(*request), response);
  }
  grpc::Status ReportEvaluation(grpc::ServerContext*,
                                const v1::ReportEvaluationRequest* request,
                                v1::ReportEvaluationResponse*) override {
    return ToGrpcStatus(control_->ReportEvaluation(*request));
  }
  grpc::Status AwaitEvaluation(grpc::ServerContext*,
                               const v1::AwaitEvaluationRequest* request,
                               v1::AwaitEvaluationResponse* response) override {
    return Answer(control_->AwaitEvaluation(*request), response);
  }
  grpc::Status Exchange(grpc::ServerContext*,
                        const v1::ExchangeRequest* request,
                        v1::ExchangeResponse* response) override {
    return Answer(control_->Exchange(*request), response);
  }
  grpc::Status PutWeights(grpc::ServerContext*,
                          const v1::PutWeightsRequest* request,
                          v1::PutWeightsResponse*) override {
    return ToGrpcStatus(control_->Put(*request));
  }
  grpc::Status GetJobStatus(grpc::ServerContext*, const v1::JobStatusRequest*,
                            v1::JobStatusResponse* response) override {
    *response = control_->Snapshot();
    return grpc::Status::OK;
  }

 private:
  JobControl* const control_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCoordinatorService(JobControl* control) {
  return std::make_unique<CoordinatorServiceImpl>(control);
}

}  // namespace tributary
