// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tributary {

// How long a process that wants a place in a job asks the coordinator for one.
// Pure: `now` is an argument.
class PlaceSearch {
 public:
  // After a call of this length the wait is logged.
  static constexpr absl::Duration kLongestCall = absl::Seconds(5);
  static constexpr absl::Duration kPauseWhenFull = absl::Milliseconds(250);

  PlaceSearch(absl::Duration now, absl::Duration timeout)
      : start_(now), timeout_(timeout) {}

  absl::Duration start() const { return start_; }
  // The timeout of a call that is made now.
  absl::Duration CallTimeout(absl::Duration now) const {
    return std::clamp(start_ + timeout_ - now, absl::ZeroDuration(),
                      kLongestCall);
  }
  // True while the coordinator may still give a place. AlreadyExists: every
  // place is taken.
  static bool Waits(const absl::Status& error) {
    return absl::IsUnavailable(error) || absl::IsAlreadyExists(error);
  }
  // The pause after a call with this error; nullopt: no further call is made.
  std::optional<absl::Duration> After(const absl::Status& error,
                                      absl::Duration now) const {
    if (!Waits(error) || now - start_ >= timeout_) return std::nullopt;
    return absl::IsAlreadyExists(error) ? kPauseWhenFull : absl::ZeroDuration();
  }

 private:
  const absl::Duration start_;
  const absl::Duration timeout_;
};

}  // namespace tributary
