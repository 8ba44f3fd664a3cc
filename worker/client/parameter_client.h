#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/plan/partition_plan.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Pushes gradients to and pulls weights from the servers of a plan. Messages
// carry the tensors' memory by reference. Failed calls are tried again until
// the step's timeout; a repeated push counts once. For one thread; the network
// runs on a thread of the client's own.
class ParameterClient {
 public:
  struct Options {
    v1::Plan plan;
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    // An earlier process of this rank computed other bits (Member::recomputes):
    // the servers drop what it gave to steps that are still open.
    bool recomputes = false;
    // A step or transfer that takes longer fails and says whom it waited for.
    absl::Duration step_timeout = absl::Seconds(120);
    // Told whom the step under way waits for, in a server's words, when it
    // waits long; and "" when it goes on. `silent_shard`: whose server does not
    // answer or cannot be reached, -1: all do. On any thread, under a lock.
    std::function<void(const std::string& whom, int silent_shard)> on_waiting;
    // For tests of timing: microseconds by which the next message, to or from
    // a server, is held back. Called from several threads.
    std::function<int64_t()> delay_micros;
  };
  struct Traffic {
    uint64_t bytes_sent = 0;  // payloads
    uint64_t bytes_received = 0;
    uint64_t retries = 0;
  };
  // A block's way to its server and back, by Clock::Real().
  struct Flight {
    int64_t begin_micros = 0;
    int64_t end_micros = 0;
  };

  // Connects lazily. Errors as MakePartitionPlan.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Connect(
      Options options);
  virtual ~ParameterClient() = default;

  virtual const PartitionPlan& partition() const = 0;
  // Of which this rank holds a part; the others are neither pulled nor pushed,
  // and their parameters' pointers not read.
  virtual bool Holds(const Block& block) const = 0;

  // Sets the initial weights, of every rank; `tensors` has one pointer per
  // parameter.
  // AlreadyExists when others stand there.
  virtual absl::Status Initialize(absl::Span<const float* const> tensors) = 0;

  // Reads all weights once at least min_version updates are applied to each.
  virtual absl::Status Pull(int64_t min_version,
                            absl::Span<float* const> tensors) = 0;
  // Reads all weights as they were after exactly `version` updates: the present
  // ones or those before. OutOfRange when they are gone.
  virtual absl::Status PullExact(int64_t version,
                                 absl::Span<float* const> tensors) = 0;
  // Reads all weights as this worker would get them at the end of its step
  // `steps`: for one that takes the place of another.
  virtual absl::Status PullFinished(int64_t steps,
                                    absl::Span<float* const> tensors) = 0;

  // How far this rank's contributions have come, its own or those of a process
  // before it. Asks until every server answers; beside a step under way.
  struct Clock {
    bool initialized = true;  // every block has weights
    int64_t steps = 0;        // contributed to every block
    int64_t begun = 0;        // contributed to some block
  };
  virtual absl::StatusOr<Clock> ReadClock() = 0;

  // One step: Begin, PushPull for every block as it becomes ready, Finish. The
  // gradients must stay as they are and the weights of a pushed block may
  // change until Finish returns, when all weights are those after the step.
  // `samples` weighs this worker's mean gradient; with 0 only the weights move.
  virtual void BeginStep(int64_t step, uint64_t samples,
                         absl::Span<const float* const> gradients,
                         absl::Span<float* const> weights) = 0;
  virtual void PushPull(const Block& block) = 0;
  // DeadlineExceeded: names step, shard and missing ranks.
  virtual absl::Status FinishStep() = 0;

  // Updates applied to the weights that came last, over all blocks: the most
  // and, between rounds, the fewest.
  virtual int64_t newest_version() const = 0;
  virtual int64_t oldest_version() const = 0;

  // Ends what is under way with Cancelled; from any thread.
  virtual void Cancel(const std::string& why) = 0;

  virtual Traffic traffic() const = 0;
  // Of the step that has finished last.
  virtual const std::vector<Flight>& flights() const = 0;
};

}  // namespace tributary
