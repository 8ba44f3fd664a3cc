// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/clones.h"
#include "common/encoding/encoding.h"

namespace tributary {
namespace {

constexpr int64_t kTopKUnit = 1024;
constexpr int64_t kIndexBytes = sizeof(uint16_t);
constexpr int64_t kRecordBytes = kIndexBytes + int64_t{sizeof(float)};
constexpr int32_t kInfinity = 0x7f800000;
// The elements of a group that are examined together: most groups hold none of
// the largest elements.
constexpr int64_t kGroupElements = 32;

constexpr int64_t InTopKUnit(int64_t n) {
  return n < kTopKUnit ? n : kTopKUnit;
}

// Magnitudes as integers that compare as the numbers do. Infinities and NaNs
// are equal: of all numbers that are not finite, the first ones are chosen.
__attribute__((always_inline)) inline void Magnitudes(int64_t n, const float* x,
                                                      int32_t* sizes) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t size = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
    sizes[i] = size < kInfinity ? size : kInfinity;
  }
}

__attribute__((always_inline)) inline int32_t CountFrom(int64_t n,
                                                        const int32_t* sizes,
                                                        int32_t least) {
  int32_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    count += static_cast<int32_t>(sizes[i] >= least);
  }
  return count;
}

// A size that at least k of the sizes reach and fewer than k exceed; exactly k
// reach it unless several are equal to it. Found bit by bit, from the highest.
__attribute__((always_inline)) inline int32_t Threshold(int64_t n, int32_t k,
                                                        const int32_t* sizes) {
  int32_t threshold = 0;
  for (int32_t bit = 1 << 30; bit > 0; bit >>= 1) {
    const int32_t count = CountFrom(n, sizes, threshold | bit);
    if (count >= k) threshold |= bit;
    if (count == k) break;
  }
  return threshold;
}

__attribute__((always_inline)) inline void PutRecord(const float* x, int64_t i,
                                                     char* indices,
                                                     char* values) {
  const auto index = static_cast<uint16_t>(i);
  std::memcpy(indices, &index, sizeof index);
  std::memcpy(values, x + i, sizeof(float));
}

// Writes the k largest, in ascending order of index: first all indices, then
// all values.
TRIBUTARY_CLONES void EncodeTopKUnit(int64_t n, int32_t k, const float* x,
                                     char* out) {
  int32_t sizes[kTopKUnit];
  Magnitudes(n, x, sizes);
  const int32_t threshold = Threshold(n, k, sizes);
  // Elements that equal the threshold fill the places that larger ones leave.
  int32_t ties = k - CountFrom(n, sizes, threshold + 1);
  char* indices = out;
  char* values = out + k * kIndexBytes;
  for (int64_t begin = 0; begin < n; begin += kGroupElements) {
    const int64_t end = begin + kGroupElements < n ? begin + kGroupElements : n;
    if (CountFrom(end - begin, sizes + begin, threshold) == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (sizes[i] < threshold) continue;
      if (sizes[i] == threshold && --ties < 0) continue;
      PutRecord(x, i, indices, values);
      indices += kIndexBytes;
      values += sizeof(float);
    }
  }
}

uint16_t IndexAt(const char* in, int64_t record) {
  uint16_t index = 0;
  std::memcpy(&index, in + record * kIndexBytes, sizeof index);
  return index;
}

// The k elements of largest magnitude of each unit of 1024 (Lin et al., Deep
// Gradient Compression, ICLR 2018, which takes the largest of a whole tensor).
// Equal magnitudes are taken in the order of their indices. A last unit of n
// elements gives k n / 1024, rounded up. It writes, for each unit, the indices
// within the unit, in ascending order, and then their values. All other
// elements are decoded to 0.
class TopK final : public Encoding {
 public:
  explicit TopK(int64_t k) : k_(k) {}

  const char* name() const override { return "top_k"; }
  const Encoding* WithFraction(double fraction) const override;
  int64_t unit() const override { return kTopKUnit; }
  bool compresses() const override { return true; }
  int64_t Bytes(int64_t n) const override {
    return (n / kTopKUnit * k_ + Chosen(n % kTopKUnit)) * kRecordBytes;
  }
  void Encode(int64_t n, const float* values, char* out) const override {
    for (int64_t begin = 0; begin < n; begin += kTopKUnit) {
      const int64_t count = InTopKUnit(n - begin);
      const int64_t k = Chosen(count);
      EncodeTopKUnit(count, static_cast<int32_t>(k), values + begin, out);
      out += k * kRecordBytes;
    }
  }
  // Skips an index that is too large, because memory that a worker shares can
  // change after it was checked.
  void Decode(int64_t n, const char* in, float* values) const override {
    std::fill_n(values, n, 0.0f);
    for (int64_t begin = 0; begin < n; begin += kTopKUnit) {
      const int64_t count = InTopKUnit(n - begin);
      const int64_t k = Chosen(count);
      for (int64_t r = 0; r < k; ++r) {
        const int64_t index = IndexAt(in, r);
        if (index < count) values[begin + index] = ValueAt(in, k, r);
      }
      in += k * kRecordBytes;
    }
  }
  int64_t FirstNonFinite(int64_t n, const char* in) const override {
    for (int64_t begin = 0; begin < n; begin += kTopKUnit) {
      const int64_t count = InTopKUnit(n - begin);
      const int64_t k = Chosen(count);
      for (int64_t r = 0; r < k; ++r) {
        if (std::isfinite(ValueAt(in, k, r))) continue;
        return begin + std::min<int64_t>(IndexAt(in, r), count - 1);
      }
      in += k * kRecordBytes;
    }
    return -1;
  }
  int64_t FirstMalformed(int64_t n, const char* in) const override {
    for (int64_t begin = 0; begin < n; begin += kTopKUnit) {
      const int64_t count = InTopKUnit(n - begin);
      const int64_t k = Chosen(count);
      int64_t before = -1;
      for (int64_t r = 0; r < k; ++r) {
        const int64_t index = IndexAt(in, r);
        if (index <= before || index >= count) return begin;
        before = index;
      }
      in += k * kRecordBytes;
    }
    return -1;
  }

 private:
  // n: the number of elements in a unit.
  int64_t Chosen(int64_t n) const {
    return (k_ * n + kTopKUnit - 1) / kTopKUnit;
  }

  static float ValueAt(const char* in, int64_t k, int64_t record) {
    float value = 0;
    std::memcpy(&value, in + k * kIndexBytes + record * int64_t{sizeof value},
                sizeof value);
    return value;
  }

  const int64_t k_;  // of a whole unit
};

int64_t ChosenOf(double fraction) {
  const double k = std::ceil(fraction * kTopKUnit);
  return k >= 1 ? static_cast<int64_t>(std::min<double>(k, kTopKUnit)) : 1;
}

const Encoding* TopK::WithFraction(double fraction) const {
  static const std::vector<TopK>* const all = [] {
    auto* made = new std::vector<TopK>;
    made->reserve(kTopKUnit);
    for (int64_t k = 1; k <= kTopKUnit; ++k) made->emplace_back(k);
    return made;
  }();
  return &(*all)[static_cast<size_t>(ChosenOf(fraction)) - 1];
}

}  // namespace

void AddTopK(Encodings* encodings) {
  encodings->push_back(std::make_unique<TopK>(ChosenOf(kTopKFraction)));
}

}  // namespace tributary
