// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/clones.h"
#include "common/encoding/encoding.h"

namespace tributary {
namespace {

constexpr int64_t kOneBitUnit = 1024;
constexpr int64_t kMeansBytes = 2 * sizeof(float);
// Element i is added to lane i % kSumLanes, whatever the instruction set.
constexpr int kSumLanes = 16;

constexpr int64_t BitsBytes(int64_t n) { return (n + 7) / 8; }
constexpr int64_t InOneBitUnit(int64_t n) {
  return n < kOneBitUnit ? n : kOneBitUnit;
}

// The means of a unit's non-negative and negative elements; 0 for no elements.
struct Means {
  float positive = 0;
  float negative = 0;

  bool AreFinite() const {
    return std::isfinite(positive) && std::isfinite(negative);
  }
};

// [i]: 1 for an element that is not negative, else 0. A NaN counts as negative.
__attribute__((always_inline)) inline void FlagPositive(int64_t n,
                                                        const float* x,
                                                        uint8_t* flags) {
  for (int64_t i = 0; i < n; ++i) flags[i] = static_cast<uint8_t>(x[i] >= 0);
}

// Adds in double, where a sum of finite floats is finite.
__attribute__((always_inline)) inline Means MeansOf(int64_t n, const float* x) {
  double positive[kSumLanes] = {};
  double negative[kSumLanes] = {};
  int32_t counts[kSumLanes] = {};
  const auto add = [&](int lane, float value) {
    const bool is_positive = value >= 0;
    const uint32_t mask = 0u - static_cast<uint32_t>(is_positive);
    const auto bits = std::bit_cast<uint32_t>(value);
    positive[lane] += static_cast<double>(std::bit_cast<float>(bits & mask));
    negative[lane] += static_cast<double>(std::bit_cast<float>(bits & ~mask));
    counts[lane] += static_cast<int32_t>(is_positive);
  };
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int lane = 0; lane < kSumLanes; ++lane) add(lane, x[i + lane]);
  }
  for (int lane = 0; i + lane < n; ++lane) add(lane, x[i + lane]);
  double positive_sum = 0, negative_sum = 0;
  int64_t count = 0;
  for (int lane = 0; lane < kSumLanes; ++lane) {
    positive_sum += positive[lane];
    negative_sum += negative[lane];
    count += counts[lane];
  }
  Means means;
  if (count > 0) {
    means.positive =
        static_cast<float>(positive_sum / static_cast<double>(count));
  }
  if (count < n) {
    means.negative =
        static_cast<float>(negative_sum / static_cast<double>(n - count));
  }
  return means;
}

// Bit j of byte b is flag 8 b + j. The product moves the lowest bits of 8 bytes
// to the highest byte.
__attribute__((always_inline)) inline void PackFlags(int64_t bytes,
                                                     const uint8_t* flags,
                                                     char* out) {
  for (int64_t b = 0; b < bytes; ++b) {
    uint64_t eight = 0;
    std::memcpy(&eight, flags + 8 * b, sizeof eight);
    out[b] = static_cast<char>(eight * 0x0102040810204080u >> 56);
  }
}

// The reverse: copies the byte 8 times, keeps bit j of copy j, and moves it to
// the lowest bit.
__attribute__((always_inline)) inline void UnpackFlags(int64_t bytes,
                                                       const char* in,
                                                       uint8_t* flags) {
  for (int64_t b = 0; b < bytes; ++b) {
    const uint64_t copies =
        uint64_t{static_cast<uint8_t>(in[b])} * 0x0101010101010101u;
    const uint64_t kept = copies & 0x8040201008040201u;
    const uint64_t eight =
        (kept + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
    std::memcpy(flags + 8 * b, &eight, sizeof eight);
  }
}

TRIBUTARY_CLONES void EncodeOneBit(int64_t n, const float* values, char* out) {
  while (n > 0) {
    const int64_t count = InOneBitUnit(n);
    uint8_t flags[kOneBitUnit] = {};
    Means means = MeansOf(count, values);
    if (means.AreFinite()) {
      FlagPositive(count, values, flags);
    } else {
      // Elements that are not finite are decoded to NaN, all others to 0.
      means = {.positive = std::nanf(""), .negative = 0};
      for (int64_t i = 0; i < count; ++i) {
        flags[i] = static_cast<uint8_t>(!std::isfinite(values[i]));
      }
    }
    std::memcpy(out, &means.positive, sizeof(float));
    std::memcpy(out + sizeof(float), &means.negative, sizeof(float));
    PackFlags(BitsBytes(count), flags, out + kMeansBytes);
    out += kMeansBytes + BitsBytes(count);
    values += count;
    n -= count;
  }
}

Means ReadMeans(const char* in) {
  Means means;
  std::memcpy(&means.positive, in, sizeof(float));
  std::memcpy(&means.negative, in + sizeof(float), sizeof(float));
  return means;
}

TRIBUTARY_CLONES void DecodeOneBit(int64_t n, const char* in, float* values) {
  while (n > 0) {
    const int64_t count = InOneBitUnit(n);
    uint8_t flags[kOneBitUnit];
    UnpackFlags(BitsBytes(count), in + kMeansBytes, flags);
    uint32_t positive = 0, negative = 0;
    std::memcpy(&positive, in, sizeof positive);
    std::memcpy(&negative, in + sizeof positive, sizeof negative);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t mask = 0u - flags[i];
      values[i] = std::bit_cast<float>((positive & mask) | (negative & ~mask));
    }
    in += kMeansBytes + BitsBytes(count);
    values += count;
    n -= count;
  }
}

// Returns the first element of a unit whose decoded number is not finite; 0 if
// no element uses the mean that is not finite; -1 if both means are finite.
int64_t FirstInOneBitUnit(int64_t n, const char* in) {
  const Means means = ReadMeans(in);
  if (means.AreFinite()) return -1;
  for (int64_t i = 0; i < n; ++i) {
    const bool is_positive = (in[kMeansBytes + i / 8] >> i % 8 & 1) != 0;
    if (!std::isfinite(is_positive ? means.positive : means.negative)) return i;
  }
  return 0;
}

// 1-bit SGD (Seide et al., Interspeech 2014), with 1024 elements of a parameter
// in the place of a column. Writes, for each of these units, the mean of its
// non-negative elements and that of its negative ones, and then one bit for
// each element, in order, from the lowest bit of a byte: 1 stands for the first
// mean.
class OneBit final : public Encoding {
 public:
  const char* name() const override { return "one_bit"; }
  int64_t unit() const override { return kOneBitUnit; }
  bool compresses() const override { return true; }
  int64_t Bytes(int64_t n) const override {
    return BitsBytes(n) + (n + kOneBitUnit - 1) / kOneBitUnit * kMeansBytes;
  }
  void Encode(int64_t n, const float* values, char* out) const override {
    EncodeOneBit(n, values, out);
  }
  void Decode(int64_t n, const char* in, float* values) const override {
    DecodeOneBit(n, in, values);
  }
  int64_t FirstNonFinite(int64_t n, const char* in) const override {
    for (int64_t begin = 0; begin < n; begin += kOneBitUnit) {
      const int64_t count = InOneBitUnit(n - begin);
      const int64_t at = FirstInOneBitUnit(count, in);
      if (at >= 0) return begin + at;
      in += kMeansBytes + BitsBytes(count);
    }
    return -1;
  }
};

}  // namespace

void AddOneBit(Encodings* encodings) {
  encodings->push_back(std::make_unique<OneBit>());
}

}  // namespace tributary
