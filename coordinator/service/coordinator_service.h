// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "common/wire/identity/call_guard.h"
#include "coordinator/service/job_control.h"

namespace tributary {

// The gRPC service of `control`, which must outlive it. It forwards the calls
// that `guard` admits, if they are made for the place of their caller.
std::unique_ptr<grpc::Service> MakeCoordinatorService(
    JobControl* control, std::shared_ptr<const CallGuard> guard);

}  // namespace tributary
