// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/column_median.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kColumns = 32;  // at a time
constexpr int64_t kBins = 1 << 16;

// Keys ascend with the numbers.
uint32_t KeyOf(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  return (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
}

float NumberOf(uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000) != 0 ? key & 0x7fffffff
                                                      : ~key);
}

// Finds the two middle values of a column: first the upper half of their keys,
// then the lower half.
class MiddleValues {
 public:
  MiddleValues() : counts_(kBins) {}

  void CountUpper(uint32_t key) { ++counts_[key >> 16]; }
  void FindUpper() {
    int64_t all = 0;
    for (int64_t count : counts_) all += count;
    rank_ = {(all - 1) / 2, all / 2};
    if (all == 0) return;
    for (int k : {0, 1}) upper_[k] = Find(counts_, &rank_[k]);
    found_ = true;
    for (int k : {0, 1}) lower_counts_[k].assign(kBins, 0);
  }
  void CountLower(uint32_t key) {
    for (int k : {0, 1}) {
      if (key >> 16 == upper_[k]) ++lower_counts_[k][key & 0xffff];
    }
  }
  double Mean() {
    if (!found_) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0;
    for (int k : {0, 1}) {
      const uint32_t lower = Find(lower_counts_[k], &rank_[k]);
      sum += NumberOf(upper_[k] << 16 | lower);
    }
    return sum / 2;
  }

 private:
  // The bin that holds the value of this rank; `rank` becomes that within it.
  static uint32_t Find(const std::vector<int64_t>& counts, int64_t* rank) {
    uint32_t bin = 0;
    while (*rank >= counts[bin]) *rank -= counts[bin++];
    return bin;
  }

  std::vector<int64_t> counts_;
  std::array<std::vector<int64_t>, 2> lower_counts_;
  std::array<uint32_t, 2> upper_ = {};
  std::array<int64_t, 2> rank_ = {};
  bool found_ = false;
};

template <typename Take>
absl::Status ForEachKey(int64_t first, int64_t end, const RowParts& parts,
                        const Take& take) {
  return parts([&](const RawData& part) {
    for (int64_t row = 0; row < part.rows; ++row) {
      const float* numbers = part.numbers.data() + row * part.numeric_width;
      for (int64_t c = first; c < end; ++c) {
        if (!std::isnan(numbers[c])) take(c - first, KeyOf(numbers[c]));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<std::vector<double>> ColumnMedians(int64_t columns,
                                                  const RowParts& parts) {
  std::vector<double> medians;
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t end = std::min(columns, first + kColumns);
    std::vector<MiddleValues> middles(end - first);
    TRIBUTARY_RETURN_IF_ERROR(ForEachKey(
        first, end, parts,
        [&](int64_t c, uint32_t key) { middles[c].CountUpper(key); }));
    for (MiddleValues& middle : middles) middle.FindUpper();
    TRIBUTARY_RETURN_IF_ERROR(ForEachKey(
        first, end, parts,
        [&](int64_t c, uint32_t key) { middles[c].CountLower(key); }));
    for (MiddleValues& middle : middles) medians.push_back(middle.Mean());
  }
  return medians;
}

}  // namespace tributary
