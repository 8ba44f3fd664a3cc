// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "common/base/mutation.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/client/transfer_ledger.h"
#include "worker/rank/client/wanted_weights.h"

namespace tributary::simulation {

// A rank's ParameterClient in events: makes the calls that TransferLedger
// decides on. One call is in progress at a time.
class SimulatedClient {
 public:
  using Done = std::function<void(absl::Status)>;
  struct Rank {
    uint32_t index = 0;
    uint64_t incarnation = 0;
    bool recomputes = false;
  };

  SimulatedClient(Context* context, Process* process)
      : context_(context), process_(process) {}

  // Drops the call in progress and continues under this plan.
  void Begin(const v1::Plan& plan, const Rank& rank);
  void Drop();

  void ReadProgress(Reply<RankProgress> done);
  void Initialize(Done done);
  void Pull(const WantedWeights& wanted, Done done);
  // Sends the gradient of step `step` + 1.
  void PushPull(int64_t step, const Tensors& gradient, Done done);

  // True when every message of the call in progress has been sent and awaits
  // its answer.
  bool waits() const { return open_ > 0 && open_ == calling_; }
  const Tensors& weights() const { return weights_; }
  int64_t newest_version() const { return newest_version_; }
  int64_t oldest_version() const;

 private:
  template <typename Request, typename T>
  using Method = void (SimulatedServer::*)(const Request&, Reply<T>);
  // The transfer of one block, as Transfer::Work.
  template <typename Request, typename T>
  struct Transfer {
    Method<Request, T> method;
    Request request;
    const char* what;
    std::function<absl::Status(const T&)> receive;
  };

  void BeginRound(Done done);
  template <typename Request, typename T>
  void Start(int64_t delay_micros, Transfer<Request, T> transfer);
  template <typename Request, typename T>
  void Try(const std::shared_ptr<Transfer<Request, T>>& transfer, int failures);
  template <typename Request, typename T>
  void Call(const char* what, absl::Duration timeout, Method<Request, T> method,
            const Request& request, std::type_identity_t<Reply<T>> done);
  void After(absl::Duration pause, std::function<void()> then);
  void ReadProgressOf(int shard, RankProgress sum, Reply<RankProgress> done);
  absl::Status TakeWeights(const Block& block, const WeightsSnapshot& weights);

  absl::Duration Now() const {
    return absl::Microseconds(context_->world.now());
  }
  v1::BlockAddress AddressOf(const Block& block) const {
    return simulation::AddressOf(plan_, block.shard, block.index);
  }
  template <typename Visit>
  void ForEachBlock(Visit visit) const {
    for (int shard = 0; shard < cut_->num_shards(); ++shard) {
      for (const Block& block : cut_->blocks(shard)) visit(block);
    }
  }

  Context* const context_;
  Process* const process_;
  v1::Plan plan_;
  std::optional<PartitionPlan> cut_;
  Rank rank_;
  int64_t round_ = 0;  // invalidates the events of earlier rounds
  TransferLedger ledger_;
  absl::Duration progress_deadline_;
  int open_ = 0, calling_ = 0;
  Done done_;

  int64_t step_ = 0;
  int64_t newest_version_ = 0;
  std::map<std::pair<int, int>, int64_t> versions_;  // [(shard, block)]
  Tensors weights_;
};

}  // namespace tributary::simulation
