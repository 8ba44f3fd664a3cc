// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "common/base/clones.h"
#include "common/encoding/encoding.h"
#include "common/encoding/halves.h"

namespace tributary {
namespace {

constexpr uint16_t kFloat16Exponent = 0x7c00;
constexpr uint32_t kFloatInfinity = 0x7f800000;
// The bits of 2^-14, the smallest normal float16, and of 2^16, the first power
// of two that is too large, as floats.
constexpr uint32_t kSmallestNormal = (127 - 14) << 23;
constexpr uint32_t kTooLarge = (127 + 16) << 23;
// In a float of this size the last bit is worth 2^-24, the unit of subnormal
// float16. Adding it rounds a smaller number to that unit.
constexpr uint32_t kSubnormalUnit = (127 - 24 + 23) << 23;

// Chooses a number by a mask: with a branch the compiler would compute a
// floating-point sum only where it is needed, and not vectorize the loop.
__attribute__((always_inline)) inline uint32_t Choose(bool first, uint32_t a,
                                                      uint32_t b) {
  const uint32_t mask = 0u - static_cast<uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

// IEEE 754 binary16, rounded to nearest, ties to even. From 65520 on values
// become infinite.
TRIBUTARY_CLONES void EncodeFloat16(int64_t n, const float* values,
                                    UnalignedHalf* out) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t size = bits & 0x7fffffffu;
    const uint32_t sign = (bits >> 16) & 0x8000u;
    // The exponent's bias goes from 127 to 15, and 13 bits are rounded away.
    const uint32_t normal =
        (size - ((127 - 15) << 23) + 0xfffu + ((size >> 13) & 1u)) >> 13;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(size) +
                                std::bit_cast<float>(kSubnormalUnit)) -
        kSubnormalUnit;
    const uint32_t beyond =
        Choose(size > kFloatInfinity, 0x7e00u, kFloat16Exponent);
    const uint32_t finite = Choose(size < kSmallestNormal, subnormal, normal);
    out[i] =
        static_cast<uint16_t>(Choose(size < kTooLarge, finite, beyond) | sign);
  }
}

TRIBUTARY_CLONES void DecodeFloat16(int64_t n, const UnalignedHalf* in,
                                    float* values) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = in[i];
    const uint32_t size = bits & 0x7fffu;
    const uint32_t shifted = size << 13;
    const uint32_t normal = shifted + ((127 - 15) << 23);
    // As a float with the exponent of 2^-14, without its leading one.
    const auto subnormal = std::bit_cast<uint32_t>(
        std::bit_cast<float>(shifted + kSmallestNormal) -
        std::bit_cast<float>(kSmallestNormal));
    const uint32_t finite = Choose(size < 0x0400u, subnormal, normal);
    const uint32_t value =
        Choose(size < kFloat16Exponent, finite, shifted | kFloatInfinity);
    values[i] = std::bit_cast<float>(value | (bits & 0x8000u) << 16);
  }
}

// IEEE 754 binary16: 11 significant bits, from 6e-8 to 65504.
class Float16 final : public Encoding {
 public:
  const char* name() const override { return "float16"; }
  int64_t Bytes(int64_t n) const override { return 2 * n; }
  void Encode(int64_t n, const float* values, char* out) const override {
    EncodeFloat16(n, values, reinterpret_cast<UnalignedHalf*>(out));
  }
  void Decode(int64_t n, const char* in, float* values) const override {
    DecodeFloat16(n, reinterpret_cast<const UnalignedHalf*>(in), values);
  }
  int64_t FirstNonFinite(int64_t n, const char* in) const override {
    return FirstWithExponent(n, reinterpret_cast<const UnalignedHalf*>(in),
                             kFloat16Exponent);
  }
};

}  // namespace

void AddFloat16(Encodings* encodings) {
  encodings->push_back(std::make_unique<Float16>());
}

}  // namespace tributary
