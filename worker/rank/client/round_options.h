// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/plan/partition_plan.h"
#include "worker/rank/client/parameter_client.h"
#include "worker/rank/client/transfer.h"

namespace tributary {

// As ParameterClient::Holds.
bool IsHeld(const ParameterClient::Options& options, const DeviceMesh& mesh,
            const Block& block);

// Returns the options of the round of a client with these options.
TransferRound::Options RoundOf(const ParameterClient::Options& options,
                               const PartitionPlan& partition,
                               const DeviceMesh& mesh);

}  // namespace tributary
