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
// One thread at a time sends, receives and polls the queue. Two would meet at
// gRPC's lock for a connection, and gRPC would then hand the work to a third.
// It is a thread of the round's own, or, where there are so few bytes that
// waking it takes longer than the work, the thread that adds transfers and
// waits.
class TransferRound {
 public:
  enum class Driver { kOwnThread, kCaller };

  struct Options {
    std::unique_ptr<CallQueue> calls;
    Driver driver = Driver::kOwnThread;
    // As in SendWindow, on a thread of the round's own.
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
  // error. Reports servers that do not answer while it waits.
  // Alone calls on_waiting, with no lock held.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel(const std::string& why) ABSL_LOCKS_EXCLUDED(mu_);
  bool Stopped() const ABSL_LOCKS_EXCLUDED(mu_);
  // How long the server may hold a call that is made now.
  absl::Duration HoldNow() const ABSL_LOCKS_EXCLUDED(mu_);

  // Sends it, on the driving thread.
  void Add(Transfer* transfer) ABSL_LOCKS_EXCLUDED(mu_);
  // The result of one attempt, as in TransferLedger. Without a value the
  // transfer is removed: after that the round's owner may destroy the round.
  std::optional<absl::Duration> After(Transfer* transfer,
                                      const absl::Status& status, int failures)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Wait tells it.
  void SetWaitingFor(v1::Wait wait) ABSL_LOCKS_EXCLUDED(mu_);
  // Tells it at once, on the thread that otherwise waits.
  void TellWaitingFor(const v1::Wait& wait) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t NextDelayMicros() {
    return options_.delay_micros ? options_.delay_micros() : 0;
  }

  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> retries{0};

 private:
  // Tells the own thread of added transfers.
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
  // Waits for news at most `timeout`; false: there are none.
  bool AwaitNews(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // The own thread.
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  // Sends what was added and may be sent, and receives what has arrived
  // meanwhile.
  void SendAdded() ABSL_LOCKS_EXCLUDED(mu_);
  // Null: there is none.
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
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;  // the last text was not empty
  std::optional<v1::Wait> untold_ ABSL_GUARDED_BY(mu_);  // the last one
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

  // Both are called on the driving thread: at the start, and for each event.
  void Send();
  void Proceed(bool ok) override;
  void Cancel();
  // The wait of the transfer, such as "an answer to the push of step 3 to
  // server HOST:PORT for 4 s"; empty while no answer is overdue.
  std::string Silence() const;
  int shard() const { return work_.shard; }
  const std::string& what() const { return work_.what; }
  // Which of the client's transfers it is.
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
  // Start of the first call without any answer; infinite when all are answered.
  absl::Duration called_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  std::unique_ptr<OutgoingCalls::Call> call_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<OutgoingCalls::Alarm> alarm_;
  absl::StatusOr<grpc::ByteBuffer> answer_;
};

}  // namespace tributary
