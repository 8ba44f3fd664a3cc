// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "common/wire/identity/call_guard.h"
#include "coordinator/service/job_control.h"

namespace tributary {

// Returns the gRPC service of `control`, which must outlive it. The service
// forwards the calls that `guard` admits, if they are made for their caller's
// place.
std::unique_ptr<grpc::Service> MakeCoordinatorService(
    JobControl* control, std::shared_ptr<const CallGuard> guard);

}  // namespace tributary
