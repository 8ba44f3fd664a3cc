// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/clones.h"
#include "common/encoding/encoding.h"

namespace tributary {
namespace {

constexpr int64_t kInt8Unit = 256;
constexpr int64_t kScaleBytes = sizeof(float);
constexpr int32_t kInfinityBits = 0x7f800000;
// A product of a byte and a scale up to this one is finite.
constexpr float kSafeScale = std::numeric_limits<float>::max() / 128;
// In a float of this size the last bit is worth 1, so adding it rounds to a
// whole number, ties to even. Its lowest byte is 0.
constexpr float kRoundToWhole = 1.5f * (1 << 23);

// Returns the largest magnitude as the bits of a float. The bits of a NaN are
// above those of infinity.
__attribute__((always_inline)) inline int32_t LargestBits(int64_t n,
                                                          const float* x) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t size = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
    largest = size > largest ? size : largest;
  }
  return largest;
}

__attribute__((always_inline)) inline void EncodeInt8Unit(int64_t n,
                                                          const float* x,
                                                          char* out) {
  const int32_t largest = LargestBits(n, x);
  float scale = std::bit_cast<float>(largest) / 127;
  char* const bytes = out + kScaleBytes;
  if (largest >= kInfinityBits) {
    for (int64_t i = 0; i < n; ++i) {
      const int32_t size = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
      bytes[i] = static_cast<char>(size >= kInfinityBits);
    }
  } else if (scale < std::numeric_limits<float>::min()) {
    // A subnormal scale has too few bits; all elements are below 1.5e-36.
    scale = 0;
    std::memset(bytes, 0, static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const float rounded = x[i] / scale + kRoundToWhole;
      bytes[i] = static_cast<char>(std::bit_cast<uint32_t>(rounded));
    }
  }
  std::memcpy(out, &scale, sizeof scale);
}

TRIBUTARY_CLONES void EncodeInt8(int64_t n, const float* values, char* out) {
  for (; n > kInt8Unit; n -= kInt8Unit) {
    EncodeInt8Unit(kInt8Unit, values, out);
    values += kInt8Unit;
    out += kScaleBytes + kInt8Unit;
  }
  if (n > 0) EncodeInt8Unit(n, values, out);
}

TRIBUTARY_CLONES void DecodeInt8(int64_t n, const char* in, float* values) {
  while (n > 0) {
    const int64_t count = n < kInt8Unit ? n : kInt8Unit;
    float scale = 0;
    std::memcpy(&scale, in, sizeof scale);
    in += kScaleBytes;
    for (int64_t i = 0; i < count; ++i) {
      values[i] = scale * static_cast<float>(static_cast<int8_t>(in[i]));
    }
    in += count;
    values += count;
    n -= count;
  }
}

// Returns the first element of a unit whose decoded number is not finite; -1:
// all are finite. In a unit whose scale is not finite, the encoder has marked
// these elements with bytes that are not 0.
int64_t FirstInInt8Unit(int64_t n, const char* in) {
  float scale = 0;
  std::memcpy(&scale, in, sizeof scale);
  if (std::abs(scale) <= kSafeScale) return -1;
  for (int64_t i = 0; i < n; ++i) {
    const auto byte = static_cast<int8_t>(in[kScaleBytes + i]);
    if (byte != 0 && !std::isfinite(scale * static_cast<float>(byte))) return i;
  }
  return std::isfinite(scale) ? -1 : 0;
}

// Blockwise quantization by the largest magnitude (QSGD: Alistarh et al., NIPS
// 2017; with units of fixed length: Dettmers et al., ICLR 2022).
// Writes, for every 256 elements, a scale (the largest magnitude / 127), and
// then for each element a signed byte: element / scale rounded to nearest, ties
// to even.
class Int8 final : public Encoding {
 public:
  const char* name() const override { return "int8"; }
  int64_t unit() const override { return kInt8Unit; }
  bool compresses() const override { return true; }
  int64_t Bytes(int64_t n) const override {
    return n + (n + kInt8Unit - 1) / kInt8Unit * kScaleBytes;
  }
  void Encode(int64_t n, const float* values, char* out) const override {
    EncodeInt8(n, values, out);
  }
  void Decode(int64_t n, const char* in, float* values) const override {
    DecodeInt8(n, in, values);
  }
  int64_t FirstNonFinite(int64_t n, const char* in) const override {
    for (int64_t begin = 0; begin < n; begin += kInt8Unit) {
      const int64_t count = n - begin < kInt8Unit ? n - begin : kInt8Unit;
      const int64_t at = FirstInInt8Unit(count, in);
      if (at >= 0) return begin + at;
      in += kScaleBytes + kInt8Unit;
    }
    return -1;
  }
};

}  // namespace

void AddInt8(Encodings* encodings) {
  encodings->push_back(std::make_unique<Int8>());
}

}  // namespace tributary
