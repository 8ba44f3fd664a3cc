// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// Why a message was refused, for the metrics (docs/monitoring.md). A status
// carries its reason from the check that failed to the place where the call is
// answered and counted. A status without a reason is not a refusal, for example
// a wait that timed out.
enum class Rejection {
  kMalformed,
  kEpoch,
  kAddress,
  kRank,
  kShape,
  kChecksum,
  kStep,
  kFenced,
  kUninitialized,
  kInitialized,
  kNonfinite,
  kSamples,
  kRates,
  kOverload,
  kNoPlan,
  kCaller,
};
inline constexpr int kNumRejections = static_cast<int>(Rejection::kCaller) + 1;

// The reason's name in metrics: "malformed", "epoch" ...
const char* RejectionName(Rejection reason);

// Attaches a reason to a status that is not OK.
absl::Status Reject(Rejection reason, absl::Status status);
// The error for a rank whose place a newer incarnation has taken.
absl::Status FencedError(uint32_t rank);
std::optional<Rejection> RejectionOf(const absl::Status& status);

// Counts refusals by reason. Thread-safe.
class RejectionCounters {
 public:
  // No effect on a status without a reason.
  void Count(const absl::Status& status);
  uint64_t of(Rejection reason) const {
    return counts_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kNumRejections> counts_{};
};

}  // namespace tributary
