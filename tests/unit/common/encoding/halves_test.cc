// SPDX-License-Identifier: Apache-2.0
// The values of the formats with 16 bits, against their definitions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/encoding/encoding.h"
#include "kernels/bfloat16_math.h"

namespace tributary {
namespace {

uint16_t Encoded(const char* format, float value) {
  uint16_t bits = 0;
  FindEncoding(format)->Encode(1, &value, reinterpret_cast<char*>(&bits));
  return bits;
}

// The values of all 65536 bit patterns, indexed by the bits.
std::vector<float> AllValues(const char* format) {
  std::vector<uint16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> values(bits.size());
  FindEncoding(format)->Decode(
      1 << 16, reinterpret_cast<const char*>(bits.data()), values.data());
  return values;
}

// The definition: a sign, an exponent and a fraction.
double Meaning(uint32_t bits, int fraction_bits, int bias) {
  const int exponent = static_cast<int>((bits & 0x7fff) >> fraction_bits);
  const int fraction = static_cast<int>(bits & ((1u << fraction_bits) - 1));
  const double size = exponent == 0
                          ? std::ldexp(fraction, 1 - bias - fraction_bits)
                          : std::ldexp(fraction + (1 << fraction_bits),
                                       exponent - bias - fraction_bits);
  return bits & 0x8000 ? -size : size;
}

struct Half {
  const char* name;
  int fraction_bits;
  int bias;
  uint32_t infinity;
};
constexpr Half kHalves[] = {{"bfloat16", 7, 127, 0x7f80},
                            {"float16", 10, 15, 0x7c00}};

TEST(HalvesTest, EveryValueIsThatOfItsDefinitionAndIsEncodedToItself) {
  for (const Half& half : kHalves) {
    const std::vector<float> values = AllValues(half.name);
    for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
      if ((bits & 0x7fff) >= half.infinity) continue;
      ASSERT_EQ(values[bits], Meaning(bits, half.fraction_bits, half.bias))
          << half.name << " " << bits;
      ASSERT_EQ(Encoded(half.name, values[bits]), bits) << half.name;
    }
    EXPECT_EQ(values[half.infinity], std::numeric_limits<float>::infinity());
    EXPECT_EQ(values[0x8000 | half.infinity],
              -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(values[half.infinity + 1]));
  }
}

// A number halfway between two neighbours becomes the even one, and a number
// just beside the middle the nearer one. The upper neighbour of the largest
// number is the one that would follow, and stands for infinity.
TEST(HalvesTest, EveryRoundingIsToNearestAndTiesGoToEven) {
  for (const Half& half : kHalves) {
    for (uint32_t bits = 0; bits < half.infinity; ++bits) {
      const double here = Meaning(bits, half.fraction_bits, half.bias);
      const double next = Meaning(bits + 1, half.fraction_bits, half.bias);
      const auto middle = static_cast<float>((here + next) / 2);
      const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      const float below = std::nextafter(middle, 0.0f);
      const float above =
          std::nextafter(middle, std::numeric_limits<float>::infinity());
      ASSERT_EQ(Encoded(half.name, middle), even) << half.name << " " << bits;
      ASSERT_EQ(Encoded(half.name, below), bits) << half.name << " " << bits;
      ASSERT_EQ(Encoded(half.name, above), bits + 1) << half.name << bits;
      ASSERT_EQ(Encoded(half.name, -middle), even | 0x8000) << half.name;
    }
  }
}

// By Python: struct.pack("<e", x), which refuses what becomes infinite here.
TEST(HalvesTest, Float16IsThatOfPython) {
  const std::pair<float, uint16_t> golden[] = {
      {0.0f, 0x0000},           {-0.0f, 0x8000},
      {1.0f, 0x3c00},           {-2.0f, 0xc000},
      {0.1f, 0x2e66},           {0.3333333432674408f, 0x3555},
      {3.1415927410f, 0x4248},  {-1234.5f, 0xe4d2},
      {65504.0f, 0x7bff},       {65519.99609375f, 0x7bff},
      {65520.0f, 0x7c00},       {-65520.0f, 0xfc00},
      {1e9f, 0x7c00},           {6.103515625e-05f, 0x0400},
      {6.0975552e-05f, 0x03ff}, {5.960464477539063e-08f, 0x0001},
      {2.9802322e-08f, 0x0000}, {2.980232594e-08f, 0x0001},
      {1e-8f, 0x0000},          {-1e-10f, 0x8000},
      {2049.0f, 0x6800},        {2051.0f, 0x6802},
      {1.00048828125f, 0x3c00}, {1.00146484375f, 0x3c02},
      {0.000123f, 0x0808}};
  for (const auto& [value, bits] : golden) {
    EXPECT_EQ(Encoded("float16", value), bits) << value;
  }
}

// By hand: 0.1 is 0x3dcccccd, pi 0x40490fdb, 1 + 2^-8 a tie.
TEST(HalvesTest, Bfloat16IsTheRoundedUpperHalfOfAFloat) {
  EXPECT_EQ(Encoded("bfloat16", 0.1f), 0x3dcd);
  EXPECT_EQ(Encoded("bfloat16", 3.14159274f), 0x4049);
  EXPECT_EQ(Encoded("bfloat16", 1.00390625f), 0x3f80);
  EXPECT_EQ(Encoded("bfloat16", 1.01171875f), 0x3f82);
  EXPECT_EQ(Encoded("bfloat16", -2.0f), 0xc000);
  EXPECT_EQ(Encoded("bfloat16", std::numeric_limits<float>::max()), 0x7f80);
  const std::vector<float> values = AllValues("bfloat16");
  uint32_t bits = 12345;
  for (int i = 0; i < 100'000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const auto value = std::bit_cast<float>(bits);
    const float rounded = RoundToBfloat16(value);
    const float decoded = values[Encoded("bfloat16", value)];
    ASSERT_EQ(std::bit_cast<uint32_t>(decoded),
              std::bit_cast<uint32_t>(rounded));
  }
}

// A payload in the lower bits alone must not make a NaN infinite.
TEST(HalvesTest, ANanStaysANan) {
  for (const Half& half : kHalves) {
    for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffc00000u}) {
      const uint16_t encoded = Encoded(half.name, std::bit_cast<float>(bits));
      EXPECT_GT(encoded & 0x7fffu, half.infinity) << half.name << bits;
      EXPECT_EQ(encoded >> 15, static_cast<int>(bits >> 31)) << half.name;
    }
  }
}

}  // namespace
}  // namespace tributary
