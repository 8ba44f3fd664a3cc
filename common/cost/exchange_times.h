// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/cost/cost_inputs.h"

namespace tributary {

inline constexpr double kFloatBytes = sizeof(float);

// The gradients of one rank of a replica: the sizes of its parameters, in the
// model's order, and the times when backward has computed them.
struct RankGradients {
  std::vector<int64_t> elements;      // of each parameter; 0: not on this rank
  std::vector<double> ready_seconds;  // since the step's start
};

// The bucket size with parameter servers: the job's own, or the default for its
// model and cluster.
uint64_t BucketBytes(const CostInputs& inputs);

struct ExchangeCost {
  double end_seconds = 0;        // when every rank has its new weights
  double bytes_sent = 0;         // by the busiest rank
  double total_bytes = 0;        // by all processes
  double optimizer_seconds = 0;  // of the process with most updates
  double total_messages = 0;     // by all processes
};

// Simulates the exchange of a step's gradients over the links. Blocks are sent
// in the order in which they become ready, and each link sends one block after
// the other (docs/parallelism.md). `replicas` is the size of the data axis.
// Every rank of a replica has its own link; with parameter servers all ranks
// share the servers. update_rate: bytes of memory per second that one process
// can sum and update.
ExchangeCost ExchangeTimes(const CostInputs& inputs, int replicas,
                           const std::vector<RankGradients>& ranks,
                           double update_rate);

// The end time of an all-reduce of `bytes` among `ranks` that all start at
// `ready`, each on a link of its own.
double AllReduceEnd(const ClusterShape& cluster, int ranks, double ready,
                    double bytes);

}  // namespace tributary
