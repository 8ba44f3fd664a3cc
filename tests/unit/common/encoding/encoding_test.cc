// The promises of encoding.h, for every format.
#include "common/encoding/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

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
  constexpr int64_t kLongest = 75;
  constexpr int kShifts = 5;
  const std::vector<float> numbers = Numbers(kLongest);
  const std::string whole = Encode(kLongest, numbers.data());
  const std::vector<float> decoded = Decode(kLongest, whole);
  ASSERT_EQ(encoding().unit(), 1);
  for (int64_t n = 0; n <= kLongest; ++n) {
    const auto size = static_cast<size_t>(encoding().Bytes(n));
    for (int shift = 0; shift < kShifts; ++shift) {
      std::string memory(size + 2 * kShifts, '#');
      encoding().Encode(n, numbers.data(), memory.data() + shift);
      EXPECT_EQ(memory.substr(shift, size), whole.substr(0, size));
      memory.erase(static_cast<size_t>(shift), size);
      EXPECT_EQ(memory, std::string(2 * kShifts, '#'));

      std::string moved = std::string(shift, '#') + whole;
      std::vector<float> out(static_cast<size_t>(n) + 1, 99);
      encoding().Decode(n, moved.data() + shift, out.data());
      EXPECT_EQ(std::memcmp(out.data(), decoded.data(), 4 * n), 0);
      EXPECT_EQ(out.back(), 99);
    }
  }
}

TEST_P(EncodingTest, WhatIsDecodedIsEncodedToTheSameBytes) {
  const std::vector<float> numbers = Numbers(4000);
  const std::string bytes = Encode(4000, numbers.data());
  const std::vector<float> decoded = Decode(4000, bytes);
  EXPECT_EQ(Encode(4000, decoded.data()), bytes);
}

TEST_P(EncodingTest, TheFirstElementThatIsNotFiniteIsFound) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> numbers = Numbers(70);
  EXPECT_EQ(encoding().FirstNonFinite(70, Encode(70, numbers.data()).data()),
            -1);
  for (int64_t at = 69; at >= 0; --at) {
    for (float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
      std::vector<float> some = numbers;
      some[static_cast<size_t>(at)] = bad;
      const std::string bytes = Encode(70, some.data());
      EXPECT_EQ(encoding().FirstNonFinite(70, bytes.data()), at) << bad;
      EXPECT_EQ(encoding().FirstNonFinite(at, bytes.data()), -1) << bad;
      const float decoded = Decode(70, bytes)[static_cast<size_t>(at)];
      EXPECT_EQ(std::isnan(decoded), std::isnan(bad));
      EXPECT_EQ(std::signbit(decoded), std::signbit(bad));
    }
  }
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
