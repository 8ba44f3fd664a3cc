// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/wire/calls/outgoing_calls.h"
#include "worker/rank/client/transfer/transfer_round.h"

namespace tributary {

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

  // Send runs at the start, Proceed for each event; both on the thread of the
  // shard's lane.
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
