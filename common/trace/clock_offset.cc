// SPDX-License-Identifier: Apache-2.0
#include "common/trace/clock_offset.h"

#include <algorithm>

namespace tributary {
namespace {

// RFC 5905's PHI: 15 microseconds a second.
constexpr int64_t kDriftMillionths = 15;

bool InRange(int64_t micros) {
  return micros >= 0 && micros <= ClockOffset::kMaxMicros;
}

}  // namespace

void ClockOffset::Add(const Sample& sample) {
  if (!InRange(sample.sent) || !InRange(sample.received) ||
      !InRange(sample.answered) || !InRange(sample.returned)) {
    return;
  }
  const int64_t round_trip =
      (sample.returned - sample.sent) - (sample.answered - sample.received);
  if (round_trip < 0 || sample.answered < sample.received) return;
  const Estimate estimate = {
      .offset_micros = ((sample.received - sample.sent) +
                        (sample.answered - sample.returned)) /
                       2,
      .uncertainty_micros = (round_trip + 1) / 2};
  const std::optional<Estimate> kept = At(sample.returned);
  if (kept && kept->uncertainty_micros < estimate.uncertainty_micros) return;
  best_ = estimate;
  taken_micros_ = sample.returned;
}

std::optional<ClockOffset::Estimate> ClockOffset::At(int64_t now_micros) const {
  if (!best_) return std::nullopt;
  Estimate estimate = *best_;
  const int64_t age = std::max<int64_t>(0, now_micros - taken_micros_);
  estimate.uncertainty_micros += age / 1'000'000 * kDriftMillionths +
                                 age % 1'000'000 * kDriftMillionths / 1'000'000;
  return estimate;
}

}  // namespace tributary
