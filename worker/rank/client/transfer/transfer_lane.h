// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/host/runtime.h"
#include "common/wire/calls/outgoing_calls.h"
#include "worker/rank/client/transfer/send_window.h"

namespace tributary {

class Transfer;

// Drives the transfers to some of the servers of a client: a queue of calls,
// which only one thread at a time uses. Two threads would compete for gRPC's
// lock of a connection, and gRPC would then hand the work to a third. The one
// thread is the lane's own or, when there are so few bytes that waking it takes
// longer than the work, the thread that adds transfers and waits.
class TransferLane {
 public:
  enum class Driver { kOwnThread, kCaller };

  struct Options {
    std::unique_ptr<CallQueue> calls;
    Driver driver = Driver::kOwnThread;
    // The limit of SendWindow. It has an effect only with kOwnThread.
    uint32_t most_unanswered = 0;
    // Whether the round has been stopped. Its transfers then end without a
    // call, so they need not wait until they may be sent.
    std::function<bool()> stopped;
  };

  explicit TransferLane(Options options);
  // All transfers must have ended.
  ~TransferLane();

  CallQueue& calls() { return *options_.calls; }

  // Starts a round, to which all transfers added from now on belong.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);
  // Sends the transfer, on the driving thread.
  void Add(Transfer* transfer) ABSL_LOCKS_EXCLUDED(mu_);
  // Call it when a transfer to the shard has ended, on the driving thread.
  void Ended(int shard) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Wakes the lane's own thread when transfers were added.
  class Wake final : public CompletionTag {
   public:
    explicit Wake(TransferLane* lane) : lane_(lane) {}
    void Proceed(bool ok) override;

   private:
    TransferLane* const lane_;
  };

  // Runs on the lane's own thread.
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  // Sends the added transfers that may be sent, and receives the answers that
  // have arrived meanwhile.
  void SendAdded() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns null when no transfer may be sent now.
  Transfer* NextToSend() ABSL_LOCKS_EXCLUDED(mu_);
  // How long to wait for answers before the window is lifted.
  absl::Duration LiftIn() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  Wake wake_{this};
  std::unique_ptr<OutgoingCalls::Alarm> wake_alarm_;

  absl::Mutex mu_;
  SendWindow window_ ABSL_GUARDED_BY(mu_);            // on SteadyNow's clock
  std::deque<Transfer*> added_ ABSL_GUARDED_BY(mu_);  // and not yet sent
  bool woken_ ABSL_GUARDED_BY(mu_) = false;           // wake_ is on its way
  std::optional<Thread> thread_;
};

}  // namespace tributary
