// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/host/runtime.h"
#include "common/plan/partition_plan.h"
#include "common/status/cause.h"
#include "common/wire/calls/outgoing_calls.h"
#include "worker/rank/client/send_window.h"
#include "worker/rank/client/transfer_ledger.h"

namespace tributary {

class Transfer;

// The state that the transfers of one client share: the queue of their calls
// and the outcome of the current round (a step, an initialization or a pull).
//
// Only one thread at a time sends, receives and polls the queue. Two threads
// would compete for gRPC's lock of a connection, and gRPC would then hand the
// work to a third. The one thread is the round's own or, when there are so few
// bytes that waking it takes longer than the work, the thread that adds
// transfers and waits.
class TransferRound {
 public:
  enum class Driver { kOwnThread, kCaller };

  struct Options {
    std::unique_ptr<CallQueue> calls;
    Driver driver = Driver::kOwnThread;
    // The limit of SendWindow. It has an effect only with kOwnThread.
    uint32_t most_unanswered = 0;
    // Makes the pauses before repeated calls differ between clients.
    uint64_t salt = 0;
    std::function<int64_t()> delay_micros;
    std::function<void(const v1::Wait&)> on_waiting;
  };

  explicit TransferRound(Options options);
  // All transfers must have ended.
  ~TransferRound();

  CallQueue& calls() { return *options_.calls; }

  // Starts a round, to which all transfers added from now on belong.
  void Begin(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until every transfer of the round has ended and returns the first
  // error. Reports servers that do not answer while it waits. Calls on_waiting
  // with no lock held; only TellWaitingFor calls it as well.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel(const std::string& why) ABSL_LOCKS_EXCLUDED(mu_);
  bool Stopped() const ABSL_LOCKS_EXCLUDED(mu_);
  // How long the server may hold a call that is made now.
  absl::Duration HoldNow() const ABSL_LOCKS_EXCLUDED(mu_);

  // Sends the transfer, on the driving thread.
  void Add(Transfer* transfer) ABSL_LOCKS_EXCLUDED(mu_);
  // Handles the result of one attempt, as in TransferLedger. When it returns no
  // pause, the transfer is removed, and the round's owner may destroy the
  // round.
  std::optional<absl::Duration> After(Transfer* transfer,
                                      const absl::Status& status, int failures)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lets Wait pass `wait` to on_waiting.
  void SetWaitingFor(v1::Wait wait) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls on_waiting at once. For the thread that otherwise calls Wait.
  void TellWaitingFor(const v1::Wait& wait) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t NextDelayMicros() {
    return options_.delay_micros ? options_.delay_micros() : 0;
  }

  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> retries{0};

 private:
  // Wakes the round's own thread when transfers were added.
  class Wake final : public CompletionTag {
   public:
    explicit Wake(TransferRound* round) : round_(round) {}
    void Proceed(bool ok) override;

   private:
    TransferRound* const round_;
  };
  struct Earlier {
    bool operator()(const Transfer* a, const Transfer* b) const;
  };

  // Looks for a server that does not answer.
  void FindSilenceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasNewsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return active_.empty() || untold_.has_value();
  }
  // Waits up to `timeout` for news. Returns false when there are none.
  bool AwaitNews(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // Runs on the round's own thread.
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  // Sends the added transfers that may be sent, and receives the answers that
  // have arrived meanwhile.
  void SendAdded() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns null when no transfer may be sent now.
  Transfer* NextToSend() ABSL_LOCKS_EXCLUDED(mu_);
  // How long to wait for answers before the window is lifted.
  absl::Duration LiftIn() ABSL_LOCKS_EXCLUDED(mu_);

  bool HasOwnThread() const { return options_.driver == Driver::kOwnThread; }

  const Options options_;
  Wake wake_{this};
  std::unique_ptr<OutgoingCalls::Alarm> wake_alarm_;

  mutable absl::Mutex mu_;
  TransferLedger ledger_ ABSL_GUARDED_BY(mu_);  // on SteadyNow's clock
  std::set<Transfer*, Earlier> active_ ABSL_GUARDED_BY(mu_);
  uint64_t added_so_far_ ABSL_GUARDED_BY(mu_) = 0;
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;  // the last wait was not empty
  std::optional<v1::Wait> untold_ ABSL_GUARDED_BY(mu_);  // for on_waiting
  // For the own thread.
  SendWindow window_ ABSL_GUARDED_BY(mu_);
  std::deque<Transfer*> added_ ABSL_GUARDED_BY(mu_);
  bool woken_ ABSL_GUARDED_BY(mu_) = false;  // wake_ is on its way
  std::optional<Thread> thread_;
};

// The transfer of one block: a unary call that is repeated until it succeeds,
// its error is final, or the round's deadline passes. Deletes itself.
class Transfer final : public CompletionTag {
 public:
  struct Work {
    const char* method;
    std::string what;  // for messages, such as "push of step 3"
    // Builds the request; called for every attempt.
    std::function<grpc::ByteBuffer(uint32_t wait_ms)> request;
    // Consumes the answer. DataLoss: the answer was damaged, retry.
    std::function<absl::Status(const grpc::ByteBuffer&)> receive;
    int shard = 0;  // the shard whose server is called
  };

  static void Start(TransferRound* round, Work work);

  // Send runs at the start, Proceed for each event; both on the driving thread.
  void Send();
  void Proceed(bool ok) override;
  void Cancel();
  // The wait of the transfer, such as "an answer to the push of step 3 to
  // server HOST:PORT for 4 s"; empty while no answer is overdue.
  std::string Silence() const;
  int shard() const { return work_.shard; }
  const std::string& what() const { return work_.what; }
  // The transfer's number among all transfers of the client.
  uint64_t number() const { return number_; }
  void SetNumber(uint64_t number) { number_ = number; }

 private:
  enum class State { kDelayedSend, kCalling, kDelayedReceive, kBackingOff };

  Transfer(TransferRound* round, Work work)
      : round_(round), work_(std::move(work)) {}

  void Call();
  void Receive();
  void RetryOrEnd(const absl::Status& status);
  void TellWaiting(const absl::Status& status);
  void SetAlarm(State state, int64_t micros);

  TransferRound* const round_;
  const Work work_;
  uint64_t number_ = 0;
  State state_ = State::kCalling;
  int attempts_ = 0;
  mutable absl::Mutex mu_;  // Cancel and Silence run on other threads
  // When the first call since the last answer began; infinite if there is none.
  absl::Duration called_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  std::unique_ptr<OutgoingCalls::Call> call_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<OutgoingCalls::Alarm> alarm_;
  absl::StatusOr<grpc::ByteBuffer> answer_;
};

}  // namespace tributary
