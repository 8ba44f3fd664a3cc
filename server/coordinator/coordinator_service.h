#pragma once

#include <memory>

#include "server/coordinator/job_control.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {

// The gRPC face of `control`, which must outlive it. It only hands on.
std::unique_ptr<v1::CoordinatorService::Service> MakeCoordinatorService(
    JobControl* control);

}  // namespace tributary
