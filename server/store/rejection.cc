// SPDX-License-Identifier: Apache-2.0
#include "server/store/rejection.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

constexpr char kPayload[] = "tributary.dev/rejection";

}  // namespace

const char* RejectionName(Rejection reason) {
  switch (reason) {
    case Rejection::kMalformed:
      return "malformed";
    case Rejection::kEpoch:
      return "epoch";
    case Rejection::kAddress:
      return "address";
    case Rejection::kRank:
      return "rank";
    case Rejection::kShape:
      return "shape";
    case Rejection::kChecksum:
      return "checksum";
    case Rejection::kStep:
      return "step";
    case Rejection::kFenced:
      return "fenced";
    case Rejection::kUninitialized:
      return "uninitialized";
    case Rejection::kInitialized:
      return "initialized";
    case Rejection::kNonfinite:
      return "nonfinite";
    case Rejection::kSamples:
      return "samples";
    case Rejection::kRates:
      return "rates";
    case Rejection::kOverload:
      return "overload";
    case Rejection::kNoPlan:
      return "no_plan";
    case Rejection::kCaller:
      return "caller";
  }
  return "unknown";
}

absl::Status Reject(Rejection reason, absl::Status status) {
  status.SetPayload(kPayload,
                    absl::Cord(std::string(1, static_cast<char>(reason))));
  return status;
}

absl::Status FencedError(uint32_t rank) {
  return Reject(Rejection::kFenced,
                absl::FailedPreconditionError(absl::StrCat(
                    "rank ", rank,
                    " is fenced: a newer incarnation has taken its place")));
}

std::optional<Rejection> RejectionOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload || payload->size() != 1) return std::nullopt;
  return static_cast<Rejection>((*payload)[0]);
}

void RejectionCounters::Count(const absl::Status& status) {
  if (const std::optional<Rejection> reason = RejectionOf(status)) {
    counts_[static_cast<size_t>(*reason)].fetch_add(1,
                                                    std::memory_order_relaxed);
  }
}

}  // namespace tributary
