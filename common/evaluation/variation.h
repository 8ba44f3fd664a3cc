// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// Mean and variation of numbers. The variation sums their squared deviations
// from the mean. Parts are added by the formula of Chan, Golub and LeVeque
// (1979), which keeps the digits of a small variation around a large mean; the
// difference of two sums of squares loses them. Equal numbers have the
// variation 0 exactly. The last bits depend on the order in which parts are
// added.
struct Variation {
  uint64_t count = 0;
  double mean = 0;
  double squares = 0;

  void Add(const Variation& other) {
    if (other.count == 0) return;
    if (count == 0) {
      *this = other;
      return;
    }
    const double share = static_cast<double>(other.count) /
                         static_cast<double>(count + other.count);
    const double distance = other.mean - mean;
    squares += other.squares +
               distance * distance * static_cast<double>(count) * share;
    mean += distance * share;
    count += other.count;
  }
  void Add(double number) { Add({1, number, 0}); }
};

}  // namespace tributary
