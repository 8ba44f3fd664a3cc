// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/partition_plan.h"
#include "common/wire/retry_policy.h"
#include "server/service/calls/rank_waits.h"
#include "server/store/parameter_shard.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The settings with which a server serves one shard of a plan.
struct ShardSetup {
  int shard = 0;
  ShardTraining training;
  Ops* ops = nullptr;  // the CPU's; outlives the plan
  // Keeps the weights where workers of this machine can read them.
  bool shares_memory = false;
  // As in ShardCallbacks.
  std::function<void(const absl::Status& why)> on_fatal;
  std::function<void(const BlockCut&)> on_checkpoint;
  TraceRecorder* trace = nullptr;  // or null; outlives the plan
};

// How a server asks its peers for their sums of a step. All pauses are equal: a
// peer that is busy with the same step answers soon.
inline constexpr RetryPolicy kPeerRetryPolicy = {
    .hold = absl::Seconds(10),
    .margin = absl::Seconds(5),
    .first_pause = absl::Milliseconds(50),
    .longest_pause = absl::Milliseconds(50)};

// A plan that a server serves: the shard of this plan and the calls for it.
// Calls in progress share its ownership, so that a plan which has ended lives
// until its last call has returned.
class ServedPlan {
 public:
  // Sends a request to the server of the shard that it names. The answer is
  // given to AddStatistics.
  using AskPeer = std::function<void(const v1::StatisticsRequest&)>;

  ServedPlan(const v1::Plan& plan, PartitionPlan partition, ShardSetup setup,
             AskPeer ask_peer);

  const v1::Plan& plan() const { return plan_; }
  const PartitionPlan& partition() const { return partition_; }
  int shard() const { return shard_; }
  ParameterShard& store() { return store_; }
  const ParameterShard& store() const { return store_; }
  const RankWaits& waits() const { return waits_; }
  // The weights' memory, if it is shared; or null.
  const std::shared_ptr<SharedArena>& memory() const { return memory_; }

  // CheckBlockAddress for the plan being served; null: no plan is served yet.
  static absl::Status CheckAddress(const ServedPlan* served,
                                   const v1::BlockAddress& address);
  // The same for a call that names no block.
  static absl::Status CheckAddress(const ServedPlan* served,
                                   const v1::StatisticsRequest& request);
  // FailedPrecondition: another process has taken the rank from this
  // incarnation. CheckAddress must have accepted `address`.
  absl::Status CheckHolder(const v1::BlockAddress& address, uint32_t rank,
                           uint64_t incarnation) const;
  absl::StatusOr<RankProgress> ReadClock(const v1::ClockRequest& request);
  // InvalidArgument, at once, for an unknown phase.
  void ReadStatistics(const v1::StatisticsRequest& request,
                      int64_t deadline_micros, StatisticsDone done);

  // InvalidArgument when the number of values is wrong.
  absl::Status AddStatistics(const v1::StatisticsRequest& request,
                             std::vector<double> values);

  // Answers the calls whose deadline has passed and samples waits(). Call it
  // regularly.
  void Tick(int64_t now_micros);
  // Answers all waiting calls with errors.
  void End() { store_.ExpireWaiters(INT64_MAX); }

 private:
  ParameterShard::Options OptionsOf(ShardSetup setup, AskPeer ask_peer) const;
  absl::Status CheckRank(uint32_t rank) const;
  // Asks every other shard that has elements.
  void AskPeers(int64_t step, StatisticsKind kind, const AskPeer& ask) const;

  const v1::Plan plan_;
  const PartitionPlan partition_;
  const int shard_;
  const std::shared_ptr<SharedArena> memory_;
  ParameterShard store_;
  RankWaits waits_;
};

}  // namespace tributary
