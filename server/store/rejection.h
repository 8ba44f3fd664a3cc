#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// Why a message was refused, for its count (docs/operations.md). A status
// carries its reason from where it is found out to where the call is answered
// and counted; a status without one is no refusal (a wait that was too long).
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
  kOverload,
  kNoPlan,
};
inline constexpr int kNumRejections = static_cast<int>(Rejection::kNoPlan) + 1;

// "malformed", "epoch" ...
const char* RejectionName(Rejection reason);

// The status with its reason; not for OK.
absl::Status Reject(Rejection reason, absl::Status status);
// Of a rank whose place a newer incarnation has taken.
absl::Status FencedError(uint32_t rank);
std::optional<Rejection> RejectionOf(const absl::Status& status);

// Counts by reason, from any thread.
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
