// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "common/base/clones.h"
#include "common/encoding/encoding.h"
#include "common/encoding/halves.h"

namespace tributary {
namespace {

constexpr uint16_t kBfloat16Exponent = 0x7f80;

// The upper half of a float, rounded to nearest, ties to even. Values beyond
// the largest bfloat16 become infinite.
TRIBUTARY_CLONES void EncodeBfloat16(int64_t n, const float* values,
                                     UnalignedHalf* out) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
    // A NaN keeps its sign and gets a payload that rounding cannot clear.
    const uint32_t rounded =
        (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x00400000u : nearest;
    out[i] = static_cast<uint16_t>(rounded >> 16);
  }
}

TRIBUTARY_CLONES void DecodeBfloat16(int64_t n, const UnalignedHalf* in,
                                     float* values) {
  for (int64_t i = 0; i < n; ++i) {
    values[i] = std::bit_cast<float>(uint32_t{in[i]} << 16);
  }
}

// The upper 16 bits of a float: its range with 8 significant bits.
class Bfloat16 final : public Encoding {
 public:
  const char* name() const override { return "bfloat16"; }
  int64_t Bytes(int64_t n) const override { return 2 * n; }
  void Encode(int64_t n, const float* values, char* out) const override {
    EncodeBfloat16(n, values, reinterpret_cast<UnalignedHalf*>(out));
  }
  void Decode(int64_t n, const char* in, float* values) const override {
    DecodeBfloat16(n, reinterpret_cast<const UnalignedHalf*>(in), values);
  }
  int64_t FirstNonFinite(int64_t n, const char* in) const override {
    return FirstWithExponent(n, reinterpret_cast<const UnalignedHalf*>(in),
                             kBfloat16Exponent);
  }
};

}  // namespace

void AddBfloat16(Encodings* encodings) {
  encodings->push_back(std::make_unique<Bfloat16>());
}

}  // namespace tributary
