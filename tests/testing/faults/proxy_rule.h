// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tributary::testing {

// One fault on the connections from some processes to others:
//
//   FROM>TO DIRECTION KIND [after=BYTES] [every=BYTES] [times=N] [ms=N]
//
// FROM, TO    worker-1, server-0, coordinator; a final * matches any rest
// DIRECTION   there (from the connecting process), back or both
// KIND        delay    delays every piece by 0..ms, drawn from the seed
//             stall    holds everything back for ms, then releases it
//             drop     holds everything back for ms, then resets
//             reset    resets the connection
//             silence  drops whatever is sent on the connections that are open
//                      then, and never tells either end: as when a host has
//                      died. Later connections are not affected
//             flip     changes a bit of a tensor on a gRPC connection
//             replay   sends the bytes so far again, on a second connection.
//                      What follows them is held back for ms
//
// It fires when `after` bytes have passed in its direction, summed over all
// connections, then after every `every` bytes, at most `times` times (default:
// once).
struct ProxyRule {
  enum class Kind { kDelay, kStall, kDrop, kReset, kSilence, kFlip, kReplay };
  enum class Direction { kThere, kBack, kBoth };

  static absl::StatusOr<ProxyRule> Parse(const std::string& text);

  // Whether the rule applies to bytes between these processes in this
  // direction.
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
