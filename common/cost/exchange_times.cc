// SPDX-License-Identifier: Apache-2.0
#include "common/cost/exchange_times.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/cost/link.h"
#include "common/plan/collective_messages.h"
#include "common/plan/gradient_ranges.h"
#include "common/plan/partition_plan.h"

namespace tributary {
namespace {

constexpr double kSmallBytes = kSmallElements * kFloatBytes;
constexpr double kPieceBytes = kPieceElements * kFloatBytes;

// The rate at which one process can use its link: CPU time per byte limits it,
// too.
double LinkRate(const CostInputs& inputs) {
  const double cpu = inputs.compute.cpu_seconds_per_byte;
  return std::min(inputs.cluster.bandwidth,
                  cpu > 0 ? 1 / cpu : ClusterShape::kInfinite);
}

// Memory traffic of an update per element, in bytes: the weight, the states,
// and `gradients` reads or writes of gradients.
double UpdateBytes(const CostInputs& inputs, double gradients) {
  return kFloatBytes * (gradients + 2 + 2 * inputs.optimizer_states);
}

// ---- parameter server

// One block that a rank of the replica pushes.
struct Push {
  double ready = 0;
  int rank = 0;
  int shard = 0;
  int index = 0;  // index within the shard
  double elements = 0;
};

// The blocks of a rank in the order in which it sends them. A rank that holds a
// part of the model has a partition of its own.
std::vector<Push> PushesOf(const CostInputs& inputs, int rank,
                           const RankGradients& gradients) {
  ParameterSpecs specs;
  std::vector<double> ready;
  for (size_t p = 0; p < gradients.elements.size(); ++p) {
    if (gradients.elements[p] == 0) continue;
    specs.push_back({absl::StrCat(p), {gradients.elements[p]}});
    ready.push_back(gradients.ready_seconds[p]);
  }
  std::vector<Push> pushes;
  if (specs.empty()) return pushes;
  const absl::StatusOr<PartitionPlan> plan = PartitionPlan::Create(
      specs, inputs.strategy.servers, BucketBytes(inputs));
  if (!plan.ok()) return pushes;  // PredictStep has checked it
  for (int shard = 0; shard < plan->num_shards(); ++shard) {
    for (const Block& block : plan->blocks(shard)) {
      Push push{0, rank, shard, block.index, static_cast<double>(block.size)};
      for (const Slice& slice : block.slices) {
        push.ready = std::max(push.ready, ready[slice.parameter]);
      }
      pushes.push_back(push);
    }
  }
  return pushes;
}

// Blocks that are ready together for several servers share the worker's link
// and arrive together. Blocks for one server follow each other.
bool LeaveTogether(const Push& a, const Push& b) {
  return a.ready == b.ready && a.rank == b.rank && a.index == b.index;
}
bool LeavesEarlier(const Push& a, const Push& b) {
  return std::tie(a.ready, a.rank, a.index, a.shard) <
         std::tie(b.ready, b.rank, b.index, b.shard);
}

// Returns when each push arrives at its server, without the latency. `pushes`
// are in the order in which they leave. Every replica sends the block at the
// same time, so the server's link carries it `replicas` times.
std::vector<double> Arrivals(const CostInputs& inputs, int replicas,
                             size_t ranks, const std::vector<Push>& pushes) {
  const Link link(LinkRate(inputs), inputs.cluster.burst_bytes);
  const double gradient_bytes = inputs.strategy.gradient_bytes;
  std::vector<Link> up(ranks, link);
  std::vector<Link> server_in(inputs.strategy.servers, link);
  std::vector<double> come(pushes.size());
  for (size_t i = 0; i < pushes.size();) {
    size_t end = i;
    double sent = 0;
    for (; end < pushes.size() && LeaveTogether(pushes[i], pushes[end]);
         ++end) {
      sent = up[pushes[end].rank].Serve(pushes[end].ready,
                                        pushes[end].elements * gradient_bytes);
    }
    for (; i < end; ++i) {
      const Push& push = pushes[i];
      come[i] = std::max(
          sent, server_in[push.shard].Serve(
                    push.ready, replicas * push.elements * gradient_bytes));
    }
  }
  return come;
}

ExchangeCost ServerTimes(const CostInputs& inputs, int replicas,
                         const std::vector<RankGradients>& ranks,
                         double update_rate) {
  const int servers = inputs.strategy.servers;
  const double rate = LinkRate(inputs), burst = inputs.cluster.burst_bytes;
  const double latency = inputs.cluster.latency;
  const double gradient_bytes = inputs.strategy.gradient_bytes;
  const double weight_bytes = inputs.strategy.weight_bytes;
  std::vector<Link> down(ranks.size(), Link(rate, burst));
  std::vector<Link> server_out(servers, Link(rate, burst));
  std::vector<Link> processor(servers, Link(update_rate));

  std::vector<Push> pushes;
  ExchangeCost cost;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<Push> own =
        PushesOf(inputs, static_cast<int>(r), ranks[r]);
    double elements = 0;
    for (const Push& push : own) elements += push.elements;
    cost.bytes_sent = std::max(cost.bytes_sent, elements * gradient_bytes);
    cost.total_messages += 2.0 * replicas * static_cast<double>(own.size());
    cost.total_bytes += replicas * elements * (gradient_bytes + weight_bytes);
    pushes.insert(pushes.end(), own.begin(), own.end());
  }
  std::sort(pushes.begin(), pushes.end(), LeavesEarlier);
  const std::vector<double> come =
      Arrivals(inputs, replicas, ranks.size(), pushes);
  // The update starts when the replicas' blocks have arrived. Each replica has
  // few unanswered blocks at a time, so the replicas' flows keep step.
  std::vector<double> work(servers);
  std::vector<std::pair<double, Push>> answers;  // with their ready time
  const double bytes_an_element =
      UpdateBytes(inputs, replicas * gradient_bytes / kFloatBytes);
  for (size_t i = 0; i < pushes.size(); ++i) {
    const Push& push = pushes[i];
    const double update = push.elements * bytes_an_element;
    work[push.shard] += update / update_rate;
    answers.push_back(
        {processor[push.shard].Serve(come[i] + latency, update), push});
  }
  std::stable_sort(
      answers.begin(), answers.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [ready, push] : answers) {
    const double bytes = push.elements * weight_bytes;
    const double arrived =
        std::max(server_out[push.shard].Serve(ready, replicas * bytes),
                 down[push.rank].Serve(ready, bytes)) +
        latency;
    cost.end_seconds = std::max(cost.end_seconds, arrived);
  }
  cost.optimizer_seconds = *std::max_element(work.begin(), work.end());
  return cost;
}

// ---- all-reduce

struct Bucket {
  double ready = 0;
  double bytes = 0;
};

std::vector<Bucket> BucketsOf(const Strategy& strategy,
                              const RankGradients& gradients) {
  std::vector<Bucket> buckets;
  for (const auto& [first, last] :
       BucketParameters(gradients.elements,
                        static_cast<int64_t>(strategy.first_bucket_bytes),
                        static_cast<int64_t>(strategy.bucket_bytes))) {
    Bucket& bucket = buckets.emplace_back();
    for (int p = first; p <= last; ++p) {
      if (gradients.elements[p] == 0) continue;
      bucket.ready = std::max(bucket.ready, gradients.ready_seconds[p]);
      bucket.bytes += static_cast<double>(gradients.elements[p]) * kFloatBytes;
    }
  }
  return buckets;
}

// One rank's link. Both directions carry the same traffic.
class PeerLink {
 public:
  PeerLink(double rate, double burst, double latency, int ranks,
           double sum_rate)
      : link_(rate, burst), latency_(latency), ranks_(ranks), sum_(sum_rate) {}

  // Sends every other rank its part of a range. Returns when the last piece has
  // been summed.
  double ReduceScatter(double ready, double bytes) {
    if (ranks_ == 1) return ready;
    const double part = bytes / ranks_;
    const double arrived = Send(ready, part * (ranks_ - 1));
    // Pieces are summed while others arrive. A sum reads all parts and writes
    // one.
    const double last = std::min(part, kPieceBytes) * (ranks_ + 1);
    const double all = part * (ranks_ + 1);
    return std::max(arrived + last / sum_, ready + all / sum_);
  }
  double AllGather(double ready, double bytes) {
    return ranks_ == 1 ? ready : Send(ready, bytes / ranks_ * (ranks_ - 1));
  }
  double AllReduce(double ready, double bytes) {
    if (ranks_ == 1) return ready;
    if (bytes > kSmallBytes) {
      return AllGather(ReduceScatter(ready, bytes), bytes);
    }
    return Send(ready, bytes * (ranks_ - 1)) + bytes * (ranks_ + 1) / sum_;
  }
  double sent() const { return sent_; }
  double messages() const { return messages_; }

 private:
  // Sends a part to every other rank.
  double Send(double ready, double bytes) {
    sent_ += bytes;
    messages_ += (ranks_ - 1) * std::ceil(bytes / (ranks_ - 1) / kPieceBytes);
    return link_.Serve(ready, bytes) + latency_;
  }

  Link link_;
  const double latency_;
  const int ranks_;
  const double sum_;  // bytes of memory per second
  double sent_ = 0;
  double messages_ = 0;
};

// One thread processes the buckets in order: sum, update and, if the state is
// sharded, an all-gather of the new weights.
ExchangeCost AllReduceTimes(const CostInputs& inputs, int replicas,
                            const std::vector<RankGradients>& ranks,
                            double update_rate) {
  const bool sharded = inputs.strategy.exchange == Exchange::kShardedAllReduce;
  ExchangeCost cost;
  for (const RankGradients& gradients : ranks) {
    PeerLink link(LinkRate(inputs), inputs.cluster.burst_bytes,
                  inputs.cluster.latency, replicas, update_rate);
    double free = 0, updating = 0;
    for (const Bucket& bucket : BucketsOf(inputs.strategy, gradients)) {
      const double begin = std::max(free, bucket.ready);
      free = sharded ? link.ReduceScatter(begin, bucket.bytes)
                     : link.AllReduce(begin, bucket.bytes);
      // The update reads the gradient twice, because it checks for NaNs first.
      const double elements =
          bucket.bytes / kFloatBytes / (sharded ? replicas : 1);
      const double update = elements * UpdateBytes(inputs, 2) / update_rate;
      free += update;
      updating += update;
      if (sharded) free = link.AllGather(free, bucket.bytes);
    }
    cost.end_seconds = std::max(cost.end_seconds, free);
    cost.bytes_sent = std::max(cost.bytes_sent, link.sent());
    cost.total_bytes += replicas * link.sent();
    cost.total_messages += replicas * link.messages();
    cost.optimizer_seconds = std::max(cost.optimizer_seconds, updating);
  }
  return cost;
}

// ---- one process

// Adds the replicas' gradients, updates the weights and copies them to the
// other replicas.
ExchangeCost ThreadTimes(const CostInputs& inputs, int replicas,
                         const std::vector<RankGradients>& ranks,
                         double update_rate) {
  ExchangeCost cost;
  double elements = 0, ready = 0;
  for (const RankGradients& gradients : ranks) {
    for (size_t p = 0; p < gradients.elements.size(); ++p) {
      elements += static_cast<double>(gradients.elements[p]);
      ready = std::max(ready, gradients.ready_seconds[p]);
    }
  }
  const double copies = kFloatBytes * 2 * (replicas - 1);
  cost.optimizer_seconds =
      elements * UpdateBytes(inputs, replicas) / update_rate;
  cost.end_seconds =
      ready + cost.optimizer_seconds + elements * copies / update_rate;
  return cost;
}

}  // namespace

uint64_t BucketBytes(const CostInputs& inputs) {
  if (inputs.strategy.bucket_bytes > 0) return inputs.strategy.bucket_bytes;
  const double elements =
      absl::c_accumulate(inputs.model->parameter_sizes, 0.0);
  return PartitionPlan::DefaultBucketBytes(kFloatBytes * elements,
                                           inputs.strategy.servers,
                                           inputs.cluster.on_loopback());
}

ExchangeCost ExchangeTimes(const CostInputs& inputs, int replicas,
                           const std::vector<RankGradients>& ranks,
                           double update_rate) {
  switch (inputs.strategy.exchange) {
    case Exchange::kParameterServer:
      return ServerTimes(inputs, replicas, ranks, update_rate);
    case Exchange::kAllReduce:
    case Exchange::kShardedAllReduce:
      return AllReduceTimes(inputs, replicas, ranks, update_rate);
    case Exchange::kThreads:
      return ThreadTimes(inputs, replicas, ranks, update_rate);
  }
  return {};
}

double AllReduceEnd(const ClusterShape& cluster, int ranks, double ready,
                    double bytes) {
  return PeerLink(cluster.bandwidth, cluster.burst_bytes, cluster.latency,
                  ranks, ClusterShape::kInfinite)
      .AllReduce(ready, bytes);
}

}  // namespace tributary
