#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <vector>

#include "server/store/statistics_exchange.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Reads the other shards' sums of a step and gives them to `deliver`, trying
// again while a peer does not answer; ends with the completion queue.
class PeerStatistics {
 public:
  using Deliver = std::function<void(int64_t step, StatisticsKind kind,
                                     int shard, std::vector<double> values)>;

  // The queue's thread runs `deliver`.
  PeerStatistics(const v1::Plan& plan, int shard, grpc::CompletionQueue* queue,
                 Deliver deliver);

  void Fetch(int64_t step, StatisticsKind kind);

 private:
  class Call;

  const uint64_t job_id_;
  const uint64_t plan_epoch_;
  grpc::CompletionQueue* const queue_;
  const Deliver deliver_;
  // One per shard; null for this one and for shards that hold nothing.
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

}  // namespace tributary
