// SPDX-License-Identifier: Apache-2.0
// The promises of encoding.h, for every format.
#include "common/encoding/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/plan/partition_plan.h"
#include "common/wire/wire_format.h"

namespace tributary {
namespace {

std::vector<float> Numbers(int64_t n) {
  std::vector<float> numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto x = static_cast<float>(i);
    numbers[i] = std::sin(1.3f * x) * std::exp(std::fmod(0.37f * x, 12.0f) - 6);
  }
  return numbers;
}

class EncodingTest : public ::testing::TestWithParam<const Encoding*> {
 protected:
  const Encoding& encoding() const { return *GetParam(); }

  std::string Encode(int64_t n, const float* values) const {
    std::string bytes(static_cast<size_t>(encoding().Bytes(n)), '?');
    encoding().Encode(n, values, bytes.data());
    return bytes;
  }
  std::vector<float> Decode(int64_t n, const std::string& bytes) const {
    std::vector<float> values(static_cast<size_t>(n));
    encoding().Decode(n, bytes.data(), values.data());
    return values;
  }
};

// Vectors cover most of a run and single elements the rest of it. Guard bytes
// show that nothing else is written.
TEST_P(EncodingTest, TheBitsDependOnNeitherLengthNorAddress) {
  constexpr int kShifts = 5;
  const int64_t unit = encoding().unit();
  const int64_t longest = 2 * unit + 75;
  const std::vector<float> numbers = Numbers(longest);
  const std::string whole = Encode(longest, numbers.data());
  std::vector<int64_t> lengths = {unit, unit + 1, 2 * unit, longest};
  if (unit > 1) lengths.push_back(unit - 1);
  for (int64_t n = 1; n <= 75; ++n) lengths.push_back(n);
  for (const int64_t n : lengths) {
    const std::string wanted = Encode(n, numbers.data());
    const auto units = static_cast<size_t>(encoding().Bytes(n / unit * unit));
    EXPECT_EQ(wanted.substr(0, units), whole.substr(0, units));
    const std::vector<float> decoded = Decode(n, wanted);
    const size_t size = wanted.size();
    for (int shift = 0; shift < kShifts; ++shift) {
      std::string memory(size + 2 * kShifts, '#');
      encoding().Encode(n, numbers.data(), memory.data() + shift);
      EXPECT_EQ(memory.substr(shift, size), wanted);
      memory.erase(static_cast<size_t>(shift), size);
      EXPECT_EQ(memory, std::string(2 * kShifts, '#'));

      std::string moved = std::string(shift, '#') + wanted;
      std::vector<float> out(static_cast<size_t>(n) + 1, 99);
      encoding().Decode(n, moved.data() + shift, out.data());
      EXPECT_EQ(std::memcmp(out.data(), decoded.data(), 4 * n), 0);
      EXPECT_EQ(out.back(), 99);
    }
  }
}

// int8 divides again by 127, which can change the last bit of a scale.
TEST_P(EncodingTest, WhatIsDecodedIsEncodedToTheSameBytes) {
  const std::vector<float> numbers = Numbers(4000);
  const std::string bytes = Encode(4000, numbers.data());
  const std::vector<float> decoded = Decode(4000, bytes);
  const std::string again = Encode(4000, decoded.data());
  if (encoding().name() != std::string("int8")) {
    EXPECT_EQ(again, bytes);
    return;
  }
  const std::vector<float> decoded_again = Decode(4000, again);
  for (size_t i = 0; i < decoded.size(); ++i) {
    EXPECT_NEAR(decoded_again[i], decoded[i], 2e-7 * std::abs(decoded[i]));
  }
}

// In the first unit and in a later one, alone and before another one.
TEST_P(EncodingTest, TheFirstElementThatIsNotFiniteIsFound) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t origin : {int64_t{0}, 2 * encoding().unit()}) {
    const int64_t n = origin + 70;
    const std::vector<float> numbers = Numbers(n);
    EXPECT_EQ(encoding().FirstNonFinite(n, Encode(n, numbers.data()).data()),
              -1);
    for (int64_t at = n - 1; at >= origin; --at) {
      for (float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
        std::vector<float> some = numbers;
        some[static_cast<size_t>(at)] = bad;
        std::string bytes = Encode(n, some.data());
        EXPECT_EQ(encoding().FirstNonFinite(n, bytes.data()), at) << bad;
        EXPECT_EQ(encoding().FirstNonFinite(origin, bytes.data()), -1) << bad;
        const float decoded = Decode(n, bytes)[static_cast<size_t>(at)];
        EXPECT_FALSE(std::isfinite(decoded));
        if (!encoding().compresses()) {
          EXPECT_EQ(encoding().FirstNonFinite(at, bytes.data()), -1) << bad;
          EXPECT_EQ(std::isnan(decoded), std::isnan(bad));
          EXPECT_EQ(std::signbit(decoded), std::signbit(bad));
        }
        some.back() = kNan;
        bytes = Encode(n, some.data());
        EXPECT_EQ(encoding().FirstNonFinite(n, bytes.data()), at) << bad;
      }
    }
  }
}

// Parameters are cut at grains, so units are the same for every number of
// servers.
TEST_P(EncodingTest, AUnitDividesAGrain) {
  EXPECT_EQ(kGrainElements % encoding().unit(), 0);
}

TEST_P(EncodingTest, WhatIsEncodedIsWellFormed) {
  const std::vector<float> numbers = Numbers(4000);
  const std::string bytes = Encode(4000, numbers.data());
  EXPECT_EQ(encoding().FirstMalformed(4000, bytes.data()), -1);
}

// Bytes as an attacker may send them: nothing is written outside, and numbers
// that pass both checks are finite.
TEST_P(EncodingTest, AnyBytesAreCheckedAndDecodedWithinTheirArrays) {
  uint32_t bits = 12345;
  int passed = 0;
  for (int round = 0; round < 400; ++round) {
    const int64_t n = round % 3 * encoding().unit() + round % 8;
    std::string bytes(static_cast<size_t>(encoding().Bytes(n)), '?');
    for (char& byte : bytes) {
      bits = bits * 1664525u + 1013904223u;
      // Few exponents are those of large numbers.
      byte = static_cast<char>((bits >> 24) & (round % 2 == 0 ? 0xff : 0x3f));
    }
    const int64_t nonfinite = encoding().FirstNonFinite(n, bytes.data());
    const int64_t malformed = encoding().FirstMalformed(n, bytes.data());
    EXPECT_TRUE(nonfinite >= -1 && nonfinite < n) << nonfinite;
    EXPECT_TRUE(malformed >= -1 && malformed < n) << malformed;
    std::vector<float> values(static_cast<size_t>(n) + 2, 99);
    encoding().Decode(n, bytes.data(), values.data() + 1);
    EXPECT_EQ(values.front(), 99);
    EXPECT_EQ(values.back(), 99);
    if (nonfinite >= 0 || malformed >= 0) continue;
    ++passed;
    for (const float value : values) EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_GT(passed, 0);
}

std::vector<const Encoding*> Pointers() {
  std::vector<const Encoding*> encodings;
  for (const auto& encoding : AllEncodings())
    encodings.push_back(encoding.get());
  return encodings;
}

INSTANTIATE_TEST_SUITE_P(Kinds, EncodingTest, ::testing::ValuesIn(Pointers()),
                         [](const auto& info) {
                           return std::string(info.param->name());
                         });

TEST(WireFormatTest,
     EveryFormatOfAJobFileHasAnEncodingAndEveryEncodingAFormat) {
  const auto* formats = v1::WireFormat_descriptor();
  EXPECT_EQ(AllEncodings().size(), static_cast<size_t>(formats->value_count()));
  for (int i = 0; i < formats->value_count(); ++i) {
    const int number = formats->value(i)->number();
    EXPECT_NE(EncodingOf(static_cast<v1::WireFormat>(number)), nullptr);
  }
  EXPECT_EQ(EncodingOf(v1::WIRE_FORMAT_FLOAT32), &Float32Encoding());
  EXPECT_EQ(EncodingOf(static_cast<v1::WireFormat>(99)), nullptr);
}

}  // namespace
}  // namespace tributary
