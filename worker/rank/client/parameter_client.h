// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/strategy.h"
#include "common/host/memory/shared_arena.h"
#include "common/plan/partition_plan.h"
#include "common/plan/rank_progress.h"
#include "common/status/cause.h"
#include "common/trace/trace_recorder.h"
#include "common/wire/identity/caller_proof.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/client/wanted_weights.h"

namespace tributary {

class CallQueue;

// Pushes gradients to the servers of a plan and pulls weights from them.
// Messages refer to gradients in Options::gradient_memory without a copy,
// unless the plan's wire format encodes them. Failed calls are retried until
// the step's timeout; a repeated push counts once. For one thread, except
// Cancel. The network of a large model runs on threads that the client owns
// (NetworkThreads in round_options.h).
class ParameterClient {
 public:
  // The rank of a client that only pulls. Such a client holds every block.
  static constexpr uint32_t kObserver = UINT32_MAX;

  // Settings that only tests change.
  struct ForTests {
    // A rank that holds fewer bytes of weights has no network thread. The
    // calling thread sends in PushPull and receives in the calls that wait.
    int64_t thread_from_bytes = 256 << 10;
    // The network threads of a rank that has any; unset: NetworkThreads. Not
    // used with `calls`.
    std::optional<int> network_threads;
    // The delay, in microseconds, of the next message to or from a server.
    // Called from several threads.
    std::function<int64_t()> delay_micros;
    // The cut of the parameters into blocks; unset: that of MakePartitionPlan.
    std::optional<PartitionPlan> cut;
    // Makes the calls to the servers of the plan; null: gRPC is used.
    std::function<std::unique_ptr<CallQueue>(const v1::Plan&)> calls;
  };
  struct Options {
    v1::Plan plan;
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    CallerProof proof;  // of this process, with the rank's ticket
    // True when this process computes other bits than the earlier process of
    // this rank (Member::recomputes). The servers then drop the earlier
    // process's contributions to steps that are still open.
    bool recomputes = false;
    // A round that takes longer fails; the error names the awaited server or
    // rank.
    absl::Duration step_timeout = absl::Seconds(120);
    Transport transport = Transport::kAuto;
    // The arena that holds the gradients. Servers on this machine may read it
    // (unless transport is kGrpc), and messages refer to it. Gradients outside
    // it, or all when it is null, are copied into messages. Nobody else may use
    // its memory or detach it. Connections that still send a cancelled step's
    // gradients keep it alive.
    std::shared_ptr<SharedArena> gradient_memory;
    // Called when a round waits long, with the reason (the server's own, or
    // that a shard's server does not answer), and with an empty Wait when it
    // continues. Called on the thread that waits.
    std::function<void(const v1::Wait&)> on_waiting;
    // Returns the samples of all ranks in a step. Pushes announce them
    // (PushPullRequest.total_samples); null: pushes announce nothing.
    std::function<uint64_t(int64_t step)> total_samples;
    ForTests for_tests;
    // Records the pushes of traced steps; null: no step is traced. Outlives the
    // client.
    TraceRecorder* trace = nullptr;
  };
  struct Traffic {
    uint64_t bytes_sent = 0;  // of payloads, sent or shared
    uint64_t bytes_received = 0;
    uint64_t retries = 0;
  };
  // The time of a block's round trip to its server, by Clock::Real().
  struct Flight {
    int64_t begin_micros = 0;
    int64_t end_micros = 0;
  };

  // Connects lazily. Errors as in MakePartitionPlan.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Connect(
      Options options);
  virtual ~ParameterClient() = default;

  virtual const PartitionPlan& partition() const = 0;
  // True when this rank holds a part of the block. Other blocks are neither
  // pulled nor pushed, and the pointers of their parameters are not read.
  virtual bool Holds(const Block& block) const = 0;

  // Sets the initial weights for all ranks. `tensors` has one pointer per
  // parameter. AlreadyExists when the servers hold different initial weights.
  virtual absl::Status Initialize(absl::Span<const float* const> tensors) = 0;

  // Reads all weights. OutOfRange when the servers no longer keep exactly the
  // wanted ones.
  virtual absl::Status Pull(const WantedWeights& wanted,
                            absl::Span<float* const> tensors) = 0;

  // Returns how far this rank's contributions have come. Retries until every
  // server answers. May be called during a step. The first call also connects
  // to the shared memory of servers on this machine. FailedPrecondition: the
  // transport asks for shared memory, but there is none.
  virtual absl::StatusOr<RankProgress> ReadProgress() = 0;

  // One step consists of BeginStep, a PushPull for each block as it becomes
  // ready, and FinishStep. Until FinishStep returns, the gradients must not
  // change and the weights of pushed blocks may change; then all weights are
  // those after the step. `samples` weighs this worker's mean gradient. With 0
  // samples no gradients are sent, only weights are received.
  // learning_rates: those of the step, as in PushPullRequest, equal on all
  // ranks; empty: those of the job's schedule.
  virtual void BeginStep(int64_t step, uint64_t samples,
                         absl::Span<const float* const> gradients,
                         absl::Span<float* const> weights,
                         absl::Span<const double> learning_rates) = 0;
  void BeginStep(int64_t step, uint64_t samples,
                 absl::Span<const float* const> gradients,
                 absl::Span<float* const> weights) {
    BeginStep(step, samples, gradients, weights, /*learning_rates=*/{});
  }
  virtual void PushPull(const Block& block) = 0;
  // `arrived` is called in later steps, between BeginStep and the end of
  // FinishStep, when a block's new weights are in memory, on the thread that
  // has received them. Call it between steps.
  virtual void OnWeights(std::function<void(const Block&)> arrived) = 0;
  // DeadlineExceeded: the message names step, shard and missing ranks.
  virtual absl::Status FinishStep() = 0;
  // True when the last finished step changed no block that this rank holds,
  // because a gradient was not finite (training.nonfinite: skip).
  virtual bool skipped() const = 0;

  // Returns what the encodings of this rank's gradients have left out so far:
  // one pointer for each parameter, null when this rank does not push it or
  // pushes it as float32. Empty without error feedback. The client changes the
  // arrays from BeginStep to FinishStep.
  virtual absl::Span<float* const> residuals() = 0;

  // The number of updates in the weights received last: the largest over all
  // blocks, and the smallest, which is valid only between rounds.
  virtual int64_t newest_version() const = 0;
  virtual int64_t oldest_version() const = 0;

  // Ends the current round with Cancelled. May be called from any thread.
  virtual void Cancel(const std::string& why) = 0;

  virtual Traffic traffic() const = 0;
  // The round trips of the last finished step.
  virtual const std::vector<Flight>& flights() const = 0;
};

}  // namespace tributary
