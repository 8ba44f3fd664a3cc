#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "coordinator/service/job_control.h"

namespace tributary {

// The gRPC face of `control`, which must outlive it. It only hands on.
std::unique_ptr<grpc::Service> MakeCoordinatorService(JobControl* control);

}  // namespace tributary
