#pragma once

#include <cstdint>
#include <vector>

#include "common/cost/cost_inputs.h"

namespace tributary {

inline constexpr double kFloatBytes = sizeof(float);

// The gradients of one rank of a replica: what it holds of the parameters, in
// the model's order, and when backward has made them.
struct RankGradients {
  std::vector<int64_t> elements;      // of each parameter; 0: not here
  std::vector<double> ready_seconds;  // since the begin of the step
};

struct ExchangeCost {
  double end_seconds = 0;        // when every rank has its new weights
  double bytes_sent = 0;         // by a rank, the busiest
  double total_bytes = 0;        // by all processes
  double optimizer_seconds = 0;  // of work, on the process that does most
  double total_messages = 0;     // by all processes
};

// Replays how the gradients of a step are exchanged over the links: blocks in
// the order in which they become ready, each link serving one after the other
// (docs/parallelism.md). `replicas` is the extent of the data axis; every rank
// of a replica has its link and, but for all-reduce, all share the servers.
// update_rate: bytes of memory a second for sums and updates of one process.
ExchangeCost ExchangeTimes(const CostInputs& inputs, int replicas,
                           const std::vector<RankGradients>& ranks,
                           double update_rate);

// An all-reduce of `bytes` among `ranks` that all begin at `ready`, on links of
// their own: the end.
double AllReduceEnd(const ClusterShape& cluster, int ranks, double ready,
                    double bytes);

}  // namespace tributary
