// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/member/coordinator_client.h"
#include "common/member/member.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Makes this process's request for a place.
v1::RegisterRequest MakeRegistration(const Member::Options& options);

// Registers. Waits up to timeouts.join for a coordinator that is not up yet and
// for a free place. Errors as Member::Join.
absl::StatusOr<v1::RegisterResponse> TakePlace(
    const Member::Options& options, const v1::RegisterRequest& request,
    CoordinatorClient& client);

}  // namespace tributary
