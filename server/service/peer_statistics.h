#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "server/store/statistics_exchange.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Reads the other shards' sums of a step and gives them to `deliver`. Retries
// while a peer does not answer.
class PeerStatistics {
 public:
  using Deliver = std::function<void(int64_t step, StatisticsKind kind,
                                     int shard, std::vector<double> values)>;

  // `deliver` runs on the queue's thread; call the methods on this thread too.
  PeerStatistics(const v1::Plan& plan, const PartitionPlan& partition,
                 int shard, grpc::CompletionQueue* queue, Deliver deliver);

  void Fetch(int64_t step, StatisticsKind kind);
  // Cancels every call; Fetch has no effect afterwards.
  void Cancel();
  bool idle() const { return calls_.empty(); }

 private:
  class Call;

  const uint64_t job_id_;
  const uint64_t plan_epoch_;
  grpc::CompletionQueue* const queue_;
  const Deliver deliver_;
  // One per shard; null for this shard and for shards without elements.
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::set<Call*> calls_;
  bool cancelled_ = false;
};

}  // namespace tributary
