#pragma once

#include <algorithm>

namespace tributary {

// One direction of a link, or a processor: serves one thing after the other, in
// the order of the calls. With a burst it is a token bucket: what has not been
// used for a while may pass at once. It is empty at first, when a step begins,
// as the step before has just used the link.
class Link {
 public:
  // Of a rate that is infinite everything passes at once.
  explicit Link(double bytes_per_second, double burst_bytes = 0)
      : rate_(bytes_per_second), burst_seconds_(burst_bytes / rate_) {}

  // When the last of `bytes` is through that are there at `ready`.
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
