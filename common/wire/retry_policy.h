// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tributary {

// When and how often a call to a parameter server is made again. Pure: the time
// that is left and the jitter are arguments. Worker, server, coordinator and
// the simulator share it.
//
// A server may hold a call for `hold`, then it answers DEADLINE_EXCEEDED and
// says what it waits for. The client's own deadline leaves `margin` more for
// the network.
struct RetryPolicy {
  absl::Duration hold = absl::Seconds(2);
  absl::Duration margin = absl::Seconds(10);
  // A server is silent when its answer is this much later than hold.
  absl::Duration silence = absl::Milliseconds(500);
  // Exponential back-off.
  absl::Duration first_pause = absl::Milliseconds(10);
  absl::Duration longest_pause = absl::Seconds(1);

  // Whether a call that ended with this status is made again. The server sends
  // the first four: not ready, damaged in transit, too late, too many calls.
  // The others come from proxies and gRPC when a stream is reset. A caller that
  // cancelled the call itself must check that first.
  static bool Repeatable(const absl::Status& status);

  // How long the server may hold a call whose remaining time is `left`.
  absl::Duration HoldFor(absl::Duration left) const;
  bool IsSilent(absl::Duration since_call) const {
    return since_call >= hold + silence;
  }

  enum class Next { kRetry, kFail, kGiveUp };  // kGiveUp: no time is left
  static Next After(const absl::Status& status, absl::Duration left);
  // The pause after `failures` failed attempts before this one, from 0. jitter:
  // from 0 to 1, picks a pause between half and all of the back-off, so that
  // clients do not all retry at once.
  absl::Duration Pause(int failures, double jitter) const;
};

}  // namespace tributary
