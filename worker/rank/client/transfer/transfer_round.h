// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/status/cause.h"
#include "common/wire/calls/outgoing_calls.h"
#include "worker/rank/client/transfer/transfer_lane.h"
#include "worker/rank/client/transfer/transfer_ledger.h"

namespace tributary {

class Transfer;

// The state that the transfers of one client share: the lanes that drive them
// and the outcome of the current round (a step, an initialization or a pull).
class TransferRound {
 public:
  using Driver = TransferLane::Driver;

  struct Options {
    // One for each lane. Lane i of n drives the calls to servers i, i + n and
    // so on. With the driver kCaller there is one.
    std::vector<std::unique_ptr<CallQueue>> calls;
    Driver driver = Driver::kOwnThread;
    uint32_t most_unanswered = 0;  // as in TransferLane::Options
    // Makes the pauses before repeated calls differ between clients.
    uint64_t salt = 0;
    std::function<int64_t()> delay_micros;
    std::function<void(const v1::Wait&)> on_waiting;
  };

  explicit TransferRound(Options options);
  // All transfers must have ended.
  ~TransferRound() = default;

  CallQueue& calls(int shard) { return LaneOf(shard).calls(); }

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

  // Sends the transfer, on the thread of its lane.
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

  int64_t NextDelayMicros() { return delay_micros_ ? delay_micros_() : 0; }

  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> retries{0};

 private:
  struct Earlier {
    bool operator()(const Transfer* a, const Transfer* b) const;
  };

  TransferLane& LaneOf(int shard) {
    return *lanes_[static_cast<size_t>(shard) % lanes_.size()];
  }
  // Looks for a server that does not answer.
  void FindSilenceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasNewsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return active_.empty() || untold_.has_value();
  }
  // Waits up to `timeout` for news. Returns false when there are none.
  bool AwaitNews(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

  const Driver driver_;
  const uint64_t salt_;
  const std::function<int64_t()> delay_micros_;
  const std::function<void(const v1::Wait&)> on_waiting_;

  mutable absl::Mutex mu_;                      // taken before a lane's
  TransferLedger ledger_ ABSL_GUARDED_BY(mu_);  // on SteadyNow's clock
  std::set<Transfer*, Earlier> active_ ABSL_GUARDED_BY(mu_);
  uint64_t added_so_far_ ABSL_GUARDED_BY(mu_) = 0;
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;  // the last wait was not empty
  std::optional<v1::Wait> untold_ ABSL_GUARDED_BY(mu_);  // for on_waiting_

  // The last member: its threads use the others.
  std::vector<std::unique_ptr<TransferLane>> lanes_;
};

}  // namespace tributary
