#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/context.h"

namespace tributary::simulation {

// The transfers of one round of a client (a step, a pull), as worker/client's
// Transfer and TransferRound: each is tried again until it succeeds, its error
// is final or the round's deadline has passed; the first failure ends all.
class TransferRound {
 public:
  // One attempt; `done` gets its outcome. DataLoss: ask again.
  using Attempt =
      std::function<void(int64_t hold_micros, int64_t timeout_micros,
                         std::function<void(absl::Status)> done)>;

  TransferRound(Context* context, Process* process)
      : context_(context), process_(process) {}

  // Ends what is under way without a word; then the transfers of the next round
  // may be added.
  void Begin(int64_t timeout_micros);
  // The first attempt is made after so long.
  void Add(int64_t delay_micros, Attempt attempt);
  // `done` is called once, when every transfer has succeeded or one has failed;
  // call it after the last Add.
  void Wait(std::function<void(absl::Status)> done);
  void Cancel(const std::string& why);

  // A round is under way and every transfer of it has been sent and is neither
  // pausing nor answered.
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
