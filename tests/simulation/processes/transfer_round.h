#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/job/context.h"

namespace tributary::simulation {

// The transfers of one round of a client (a step, a pull), as Transfer and
// TransferRound in worker/client. Each transfer is retried until it succeeds,
// its error is final or the round's deadline has passed. The first failure ends
// all transfers.
class TransferRound {
 public:
  // One attempt; `done` gets its result. DataLoss: retry.
  using Attempt =
      std::function<void(int64_t hold_micros, int64_t timeout_micros,
                         std::function<void(absl::Status)> done)>;

  TransferRound(Context* context, Process* process)
      : context_(context), process_(process) {}

  // Drops the transfers in progress; then the next round's transfers may be
  // added.
  void Begin(int64_t timeout_micros);
  // Adds a transfer whose first attempt starts after `delay_micros`.
  void Add(int64_t delay_micros, Attempt attempt);
  // `done` is called once, when every transfer has succeeded or one has failed.
  // Call Wait after the last Add.
  void Wait(std::function<void(absl::Status)> done);
  void Cancel(const std::string& why);

  // True when a round is in progress and every one of its transfers has been
  // sent and awaits its answer.
  bool waits() const { return done_ != nullptr && active_ == calling_; }

 private:
  void Try(Attempt attempt, int attempts);
  void Outcome(const Attempt& attempt, int attempts,
               const absl::Status& status);
  void End(const absl::Status& status);
  void After(int64_t micros, std::function<void()> then);
  absl::Duration Left() const;

  Context* const context_;
  Process* const process_;
  int64_t round_ = 0;
  int64_t deadline_ = 0;
  int active_ = 0;
  int calling_ = 0;
  absl::Status status_;
  std::function<void(absl::Status)> done_;
};

}  // namespace tributary::simulation
