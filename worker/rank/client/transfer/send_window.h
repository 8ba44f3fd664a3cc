// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "absl/time/time.h"

namespace tributary {

// Limits how many transfers to one server are unanswered at a time. A server
// answers a block when the blocks of all workers have come, so with a limit no
// worker runs far ahead of the slowest. Flows then keep pace even if TCP serves
// them unevenly, and no link is idle at the end (docs/decisions/block-size.md).
//
// A server may answer nothing before it has everything, for example when the
// norm of the whole gradient is wanted, and a slow rank may keep all others
// waiting. So when nothing was answered for some time, the limit is lifted for
// the rest of the round and for the next rounds: first 1, then 3, 7 and at most
// 1023 rounds. A plain object: time is passed in.
class SendWindow {
 public:
  static constexpr absl::Duration kLeastPatience = absl::Milliseconds(10);
  static constexpr absl::Duration kMostPatience = absl::Milliseconds(250);

  // most: the most unanswered transfers to one server; 0: any number.
  explicit SendWindow(uint32_t most) : most_(most) {}

  // Starts a round. All transfers of the last round must have ended.
  void Begin(absl::Duration now);
  bool MaySend(int shard) const;
  void Sent(int shard, absl::Duration now);
  void Ended(int shard, absl::Duration now);

  // How long transfers that may not be sent wait at most before Lift.
  absl::Duration LiftIn(absl::Duration now) const {
    return progress_ + patience_ - now;
  }
  void Lift();

 private:
  const uint32_t most_;
  bool limited_ = false;
  std::map<int, std::deque<absl::Duration>> sent_;  // unanswered, by shard
  absl::Duration progress_;  // when a transfer was sent or ended last
  // This round's transfers that have ended, and the sum of their times, each
  // from sending it to its end.
  int ended_ = 0;
  absl::Duration total_;
  absl::Duration patience_ = kMostPatience;
  int pause_ = 0;   // rounds without a limit after the last Lift
  int paused_ = 0;  // of these, still to come
};

}  // namespace tributary
