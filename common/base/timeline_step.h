// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace tributary {

// True for the steps (from 1) whose timeline workers report: the first 64
// steps, then 32 steps each time that the step number doubles. The record of a
// run of any length stays small and still covers all of it.
constexpr bool IsTimelineStep(int64_t step) {
  if (step < 1) return false;
  if (step <= 64) return true;
  const int doublings = std::bit_width(static_cast<uint64_t>(step)) - 1;
  return step % (int64_t{1} << (doublings - 5)) == 0;
}

// Most spans that one report may hold.
inline constexpr int kMaxStepSpans = 512;

}  // namespace tributary
