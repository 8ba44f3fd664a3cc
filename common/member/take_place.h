#pragma once

#include "absl/status/statusor.h"
#include "common/member/coordinator_client.h"
#include "common/member/member.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The description with which this process asks for a place.
v1::RegisterRequest MakeRegistration(const Member::Options& options);

// Registers, waiting up to join_timeout for a coordinator that is not up yet
// and for a place that is not free yet. Errors as Member::Join.
absl::StatusOr<v1::RegisterResponse> TakePlace(
    const Member::Options& options, const v1::RegisterRequest& request,
    CoordinatorClient& client);

}  // namespace tributary
