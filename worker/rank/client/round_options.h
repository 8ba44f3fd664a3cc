// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/plan/partition_plan.h"
#include "worker/rank/client/parameter_client.h"
#include "worker/rank/client/transfer/transfer_round.h"

namespace tributary {

// As ParameterClient::Holds.
bool IsHeld(const ParameterClient::Options& options, const DeviceMesh& mesh,
            const Block& block);

// The number of network threads for a client that holds `bytes` of weights on
// `servers` servers. One thread copies and checks weights about as fast as one
// server computes them, so there is one thread for each server, but at most one
// for every 16 MiB. processors_a_worker: this machine's processors, divided by
// the job's workers on it; the threads of a client use at most a quarter of
// them.
int NetworkThreads(int64_t bytes, int servers, int processors_a_worker);

// Returns the options of the round of a client with these options.
TransferRound::Options RoundOf(const ParameterClient::Options& options,
                               const PartitionPlan& partition,
                               const DeviceMesh& mesh);

}  // namespace tributary
