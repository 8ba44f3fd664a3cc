// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/wire/retry_policy.h"

namespace tributary {

// The outcome of a client's current round of transfers (a step, a pull, the
// first weights). Decides after each attempt of a transfer whether it is made
// again; the first transfer that fails ends the round. Pure: `now` is an
// argument, on any clock.
class TransferLedger {
 public:
  static constexpr RetryPolicy kPolicy = {};
  // The timeout of one call that reads a rank's progress, which the server
  // answers at once, and the pause before the next such call.
  static constexpr absl::Duration kProgressTimeout = absl::Seconds(2);
  static constexpr absl::Duration kProgressPause = absl::Milliseconds(20);

  // Starts a round, to which all transfers added from now on belong.
  void Begin(absl::Duration now, absl::Duration timeout);
  void Add() { ++open_; }

  // How long the server may hold an attempt.
  absl::Duration HoldFor(absl::Duration now) const {
    return kPolicy.HoldFor(deadline_ - now);
  }
  // An attempt of the transfer `what` has ended with `status`, after `failures`
  // attempts that failed before it. Returns the pause before the next attempt;
  // without a value the transfer has ended. jitter: from 0 to 1.
  std::optional<absl::Duration> After(const absl::Status& status,
                                      const std::string& what, int failures,
                                      double jitter, absl::Duration now);
  // Ends this round and all later ones with Cancelled.
  void Cancel(const std::string& why) { cancelled_ = why; }

  // True when no attempt may succeed any more.
  bool stopped() const { return !cancelled_.empty() || !status_.ok(); }
  bool over() const { return open_ == 0; }  // all transfers have ended
  // The first error of the round.
  const absl::Status& status() const { return status_; }

 private:
  absl::Duration deadline_;
  int open_ = 0;
  absl::Status status_;
  std::string cancelled_;  // why; empty: not cancelled
};

}  // namespace tributary
