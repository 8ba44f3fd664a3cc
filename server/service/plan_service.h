// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/plan/partition_plan.h"
#include "common/wire/calls/outgoing_calls.h"
#include "server/service/parameter_handlers.h"
#include "server/service/peer_statistics.h"
#include "server/service/served_plan.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Serves the plans of a server, one after the other: gives each to the handlers
// of calls and asks the plan's other servers for their sums. Thread-safe.
class PlanService {
 public:
  struct Options {
    const Clock* clock = nullptr;
    std::shared_ptr<const CallGuard> guard;  // never null
    // The calls to the servers of a plan.
    std::function<std::unique_ptr<OutgoingCalls>(const v1::Plan&)> connect;
    // Runs a function soon, in order, on the thread that handles the tags of
    // these calls.
    std::function<void(std::function<void()>)> post;
  };
  // How a shard gets the values that its plan starts from.
  struct Restore {
    // Fills a block from the checkpoint that the plan restores; null: the plan
    // restores none.
    ParameterShard::LoadBlock load_block;
    int64_t skipped_steps = 0;  // as in BlockState::Restore
    // Called after the last block was loaded; on an error nothing is served.
    std::function<absl::Status()> on_loaded;
  };

  explicit PlanService(Options options)
      : options_(std::move(options)),
        handlers_(options_.clock, options_.guard) {}

  // Starts to serve a plan, whose partition this is, and ends the previous one:
  // the waiting calls of the previous plan are answered with errors and its
  // weights are gone. While Serve runs, and after an error, calls are answered
  // with Unavailable. InvalidArgument: a shard out of range, or an epoch that
  // is not later than the previous one. Other errors come from `restore`.
  absl::Status Serve(const v1::Plan& plan, PartitionPlan partition,
                     ShardSetup setup, const Restore& restore)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Hands over a snapshot of every block, as ShardBlocks::CutAll.
  absl::Status CutAll(int64_t steps);
  // Answers the calls whose deadline has passed. Call it regularly, on the
  // thread of the calls.
  void Tick();
  // Answers all waiting calls, on the thread of the calls.
  void EndCalls();
  // Cancels the calls to other servers.
  void CancelCalls() ABSL_LOCKS_EXCLUDED(mu_);

  ParameterHandlers& handlers() { return handlers_; }
  const ParameterHandlers& handlers() const { return handlers_; }

 private:
  void EndPlan() ABSL_LOCKS_EXCLUDED(mu_);
  void AddStatistics(const v1::StatisticsRequest& request,
                     std::vector<double> values);

  const Options options_;
  ParameterHandlers handlers_;
  absl::Mutex mu_;
  std::shared_ptr<PeerStatistics> peers_ ABSL_GUARDED_BY(mu_);  // of the plan
  uint64_t last_epoch_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tributary
