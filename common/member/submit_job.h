// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/wire/identity/caller_proof.h"

namespace tributary {

// Sends a program's settings of its job (SubmitJobRequest) to the coordinator
// at host:port. Waits up to `timeout` for a coordinator that is not up yet, and
// while its port passes from the intake to the coordinator. Call it before
// Member::Join. Unavailable: no coordinator answered. InvalidArgument: a
// setting is wrong; the message names it. FailedPrecondition: the job has a
// model of its own.
absl::Status SubmitJob(const std::string& coordinator,
                       const std::vector<std::string>& settings,
                       absl::Duration timeout, const CallerProof& proof = {},
                       const Clock* clock = &Clock::Real());

}  // namespace tributary
