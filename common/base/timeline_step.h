#pragma once

#include <bit>
#include <cstdint>

namespace tributary {

// The steps (from 1) of which workers say when they did what: the first 64, and
// then 32 of every doubling, so that a record of any run stays small and still
// has steps of every part of it.
constexpr bool IsTimelineStep(int64_t step) {
  if (step < 1) return false;
  if (step <= 64) return true;
  const int doublings = std::bit_width(static_cast<uint64_t>(step)) - 1;
  return step % (int64_t{1} << (doublings - 5)) == 0;
}

// Spans that one report may hold.
inline constexpr int kMaxStepSpans = 512;

}  // namespace tributary
