// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/malformed/bit_flips.h"

#include <algorithm>
#include <cstdio>

#include "common/wire/crc32c/crc32c.h"

namespace tributary::testing {

void BitFlips::Begin(const std::string& message) {
  random_.seed(Crc32c(message.data(), message.size()));
  many_ = Below(2) == 0;
}

void BitFlips::Damage(char* data, size_t n) {
  const std::string before(data, n);
  const auto flip = [&](size_t at) {
    data[at] = static_cast<char>(data[at] ^ 1 << Below(8));
  };
  many_ = !many_;
  if (!many_) return flip(Below(n));
  while (std::equal(before.begin(), before.end(), data)) {
    if (Below(2) == 0) {
      for (size_t left = 2 + Below(7); left > 0; --left) flip(Below(n));
      continue;
    }
    const size_t bytes = std::min(n, 2 + Below(15));
    const size_t begin = Below(n - bytes + 1);
    for (size_t i = 0; i < bytes; ++i) {
      data[begin + i] = static_cast<char>(random_());
    }
  }
}

std::string BitFlips::Damaged(const std::string& message, size_t header_bytes) {
  std::string damaged = message;
  Damage(damaged.data(), Below(2) == 0 ? header_bytes : damaged.size());
  return damaged;
}

BitFlips::Count BitFlips::Print() const {
  Count sum;
  std::printf("%-52s %7s %7s %7s\n", "", "flips", "refused", "same");
  for (const auto& [name, count] : counts_) {
    std::printf("%-52s %7d %7d %7d\n", name.c_str(), count.flips, count.refused,
                count.same);
    sum.flips += count.flips;
    sum.refused += count.refused;
    sum.same += count.same;
  }
  std::printf("%-52s %7d %7d %7d\n", "all", sum.flips, sum.refused, sum.same);
  return sum;
}

}  // namespace tributary::testing
