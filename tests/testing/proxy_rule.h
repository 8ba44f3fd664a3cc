#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tributary::testing {

// One fault on the connections from some processes to others:
//
//   FROM>TO DIRECTION KIND [after=BYTES] [every=BYTES] [times=N] [ms=N]
//
// FROM, TO    worker-1, server-0, coordinator; * at the end stands for the rest
// DIRECTION   there (from the one that connects), back or both
// KIND        delay    holds every piece back by 0..ms, drawn from the seed
//             stall    holds everything back for ms, then lets it go
//             drop     holds everything back for ms, then resets the
//             connections reset    resets the connection flip     changes a bit
//             of a tensor on a gRPC connection replay   a second connection
//             sends once more what was sent so far
// It fires when so many bytes have passed on the way that it names, summed over
// all connections, then every so many bytes, at most so often (default: once).
struct ProxyRule {
  enum class Kind { kDelay, kStall, kDrop, kReset, kFlip, kReplay };
  enum class Direction { kThere, kBack, kBoth };

  static absl::StatusOr<ProxyRule> Parse(const std::string& text);

  // Whether it is about bytes that go this way.
  bool Matches(const std::string& connecting, const std::string& listening,
               bool back) const;

  std::string from;
  std::string to;
  Direction direction = Direction::kBoth;
  Kind kind = Kind::kDelay;
  int64_t after = 0;
  int64_t every = 1;
  int64_t times = 1;
  int64_t ms = 0;
};

}  // namespace tributary::testing
