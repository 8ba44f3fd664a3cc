// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/plan/partition_plan.h"
#include "common/wire/calls/outgoing_calls.h"
#include "common/wire/identity/caller_proof.h"
#include "coordinator/job/final_weights.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

struct ReadWeightsOptions {
  const Clock* clock = &Clock::Real();
  absl::Duration timeout = absl::Seconds(60);  // for the whole read
  std::function<bool()> cancelled;             // polled between calls
  CallerProof proof;                           // with the coordinator's ticket
  // See ParameterClient::ForTests.
  struct ForTests {
    std::optional<PartitionPlan> cut;
    std::function<std::unique_ptr<CallQueue>(const v1::Plan&)> calls;
  };
  ForTests for_tests;
};

// Pulls every block of the plan from its server, with exactly `version` updates
// applied (common/job/job_options.h). If an answer is damaged or does not
// arrive, retries until the timeout. Errors name the server and the block.
absl::StatusOr<FinalWeights> ReadFinalWeights(
    const v1::Plan& plan, int64_t version, const ReadWeightsOptions& options);

}  // namespace tributary
