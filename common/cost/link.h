// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace tributary {

// One direction of a link, or a processor: serves requests one after the other,
// in the order of the calls. With a burst the link is a token bucket: bytes
// pass at once, up to the unused capacity. The bucket is empty at the start of
// a step, because the previous step has just used the link.
class Link {
 public:
  // With an infinite rate everything passes at once.
  explicit Link(double bytes_per_second, double burst_bytes = 0)
      : rate_(bytes_per_second), burst_seconds_(burst_bytes / rate_) {}

  // The time at which the last of `bytes` has passed, if all are available at
  // `ready`.
  double Serve(double ready, double bytes) {
    free_ = std::max(free_, ready - burst_seconds_) + bytes / rate_;
    return std::max(ready, free_);
  }

 private:
  double rate_;
  double burst_seconds_;
  double free_ = 0;
};

}  // namespace tributary
