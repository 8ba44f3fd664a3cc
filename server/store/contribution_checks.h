// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/plan/partition_plan.h"
#include "server/aggregate/gradient_aggregator.h"
#include "server/store/shard_blocks.h"

namespace tributary {

// Errors are those of PushPull in parameter_service.proto, with the reason for
// which the contribution is refused.

// Checks everything except the payload.
absl::Status CheckNumbers(const ShardBlocks& shard, const Block& block,
                          const Contribution& c);
absl::Status CheckSize(const Block& block, const Contribution& c);

// The errors for the verdicts kWrongTotal and kWrongRates on `sent`.
absl::Status WrongTotal(const GradientAggregator& aggregator,
                        const Contribution& sent);
absl::Status WrongRates(const GradientAggregator& aggregator,
                        const Contribution& sent);

}  // namespace tributary
