// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/plan/partition_plan.h"
#include "worker/rank/client/parameter_client.h"
#include "worker/rank/client/transfer/transfer_round.h"

namespace tributary {

// As ParameterClient::Holds.
bool IsHeld(const ParameterClient::Options& options, const DeviceMesh& mesh,
            const Block& block);

// How many network threads a client uses that holds `bytes` of weights: each
// drives some of the servers. One thread copies and checks about as many bytes
// in a second as one server sums and updates, so several servers want several
// threads. They take at most a quarter of the processors that this machine has
// for each of the job's workers on it. More than one only where each copies so
// much in a step that waking it costs nothing beside.
int NetworkThreads(int64_t bytes, int servers, int processors_a_worker);

// Returns the options of the round of a client with these options.
TransferRound::Options RoundOf(const ParameterClient::Options& options,
                               const PartitionPlan& partition,
                               const DeviceMesh& mesh);

}  // namespace tributary
