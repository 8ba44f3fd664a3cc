// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "coordinator/service/job_control.h"

namespace tributary {

// The gRPC service of `control`, which must outlive it. It only forwards calls.
std::unique_ptr<grpc::Service> MakeCoordinatorService(JobControl* control);

}  // namespace tributary
