// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/base/clones.h"
#include "kernels/grain_math.h"

#define TRIBUTARY_INLINE inline __attribute__((always_inline))
#define TRIBUTARY_INLINE_LAMBDA __attribute__((always_inline))

// For a loop whose iterations access only their own index. Its arrays may be
// identical, but must not overlap with a shift.
#if defined(__clang__)
#define TRIBUTARY_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TRIBUTARY_IVDEP _Pragma("GCC ivdep")
#endif

namespace tributary {

// Covers [0, n) with runs of eight, four or one: run(first, count) with a
// constant count, so that short rows are vectorized too. The last run may
// overlap the previous one and then repeats part of its work.
template <typename Run>
TRIBUTARY_INLINE void ForEachRun(int64_t n, Run run) {
  constexpr std::integral_constant<int, 8> kEight;
  constexpr std::integral_constant<int, 4> kFour;
  constexpr std::integral_constant<int, 1> kOne;
  if (n >= 8) {
    for (int64_t i = 0; i + 8 <= n; i += 8) run(i, kEight);
    if (n % 8 != 0) run(n - 8, kEight);
  } else if (n >= 4) {
    run(int64_t{0}, kFour);
    if (n > 4) run(n - 4, kFour);
  } else {
    for (int64_t i = 0; i < n; ++i) run(i, kOne);
  }
}

// The sum of element(i) for i in [0, n), in the order of grain_math.h.
template <typename Element>
TRIBUTARY_INLINE double LaneSum(int64_t n, Element element) {
  double lane[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) lane[j] += element(i + j);
  }
  int done = 0;  // lanes that the remaining elements have filled
  for (; i + done + 8 <= n; done += 8) {
    for (int j = done; j < done + 8; ++j) lane[j] += element(i + j);
  }
  for (int j = done; i + j < n; ++j) lane[j] += element(i + j);
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
}

// The largest x[i]; n is at least 1.
TRIBUTARY_INLINE float LaneMax(int64_t n, const float* x) {
  float lane[kSumLanes];
  for (int j = 0; j < kSumLanes; ++j) lane[j] = x[0];
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) {
      lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    }
  }
  for (int j = 0; i + j < n; ++j) {
    lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) {
      lane[j] = lane[j + width] > lane[j] ? lane[j + width] : lane[j];
    }
  }
  return lane[0];
}

}  // namespace tributary
