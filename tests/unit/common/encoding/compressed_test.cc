// SPDX-License-Identifier: Apache-2.0
// The values of int8, top_k and one_bit, against their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/encoding/encoding.h"

namespace tributary {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string Encode(const Encoding& encoding, const std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  std::string bytes(static_cast<size_t>(encoding.Bytes(n)), '?');
  encoding.Encode(n, values.data(), bytes.data());
  return bytes;
}

std::string Hex(const Encoding& encoding, const std::vector<float>& values) {
  return absl::BytesToHexString(Encode(encoding, values));
}

std::vector<float> Decode(const Encoding& encoding, int64_t n,
                          const std::string& bytes) {
  EXPECT_EQ(bytes.size(), static_cast<size_t>(encoding.Bytes(n)));
  std::vector<float> values(static_cast<size_t>(n), 99);
  encoding.Decode(n, bytes.data(), values.data());
  return values;
}

std::vector<float> DecodeHex(const Encoding& encoding, int64_t n,
                             const std::string& hex) {
  return Decode(encoding, n, absl::HexStringToBytes(hex));
}

// Numbers with many equal magnitudes.
std::vector<float> NumbersWithTies(int64_t n) {
  std::vector<float> numbers;
  uint32_t bits = 12345;
  for (int64_t i = 0; i < n; ++i) {
    bits = bits * 1664525u + 1013904223u;
    numbers.push_back((static_cast<float>(bits >> 20) - 2048.0f) / 16);
  }
  return numbers;
}

// ---- int8

const Encoding& Int8() { return *FindEncoding("int8"); }

TEST(Int8Test, AUnitHasAScaleAndAByteForEachElement) {
  EXPECT_EQ(Int8().Bytes(0), 0);
  EXPECT_EQ(Int8().Bytes(1), 5);
  EXPECT_EQ(Int8().Bytes(256), 260);
  EXPECT_EQ(Int8().Bytes(257), 265);
}

// By hand, with a scale of 1: halves go to the even neighbour.
TEST(Int8Test, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(Hex(Int8(),
                {127, -127, 1, 0.5f, -0.5f, 1.5f, 2.5f, 63.5f, -0.51f, -2.5f}),
            "0000803f"
            "7f810100000202"
            "40fffe");
}

// By Python, of [0.1, -0.3, 0.7, 0.05, -0.7] as floats x, where f rounds to
// float32: s = f(0.7 / 127); [round(f(v / s)) for v in x] is
// [18, -54, 127, 9, -127].
TEST(Int8Test, IsThatOfPython) {
  const std::string hex = "6c9cb43b12ca7f0981";
  EXPECT_EQ(Hex(Int8(), {0.1f, -0.3f, 0.7f, 0.05f, -0.7f}), hex);
  const std::vector<float> decoded = DecodeHex(Int8(), 5, hex);
  std::string bytes(20, '?');
  std::memcpy(bytes.data(), decoded.data(), 20);
  EXPECT_EQ(absl::BytesToHexString(bytes),
            "fa2fcb3dfb6398be3333333ffa2f4b3d333333bf");
}

TEST(Int8Test, EveryUnitHasItsOwnScale) {
  std::vector<float> values(513, 0.0f);
  values[255] = 12.7f;
  values[512] = -254;
  const std::vector<float> decoded =
      Decode(Int8(), 513, Encode(Int8(), values));
  EXPECT_FLOAT_EQ(decoded[255], 12.7f);
  EXPECT_EQ(decoded[512], -254);
  EXPECT_EQ(std::count(decoded.begin(), decoded.end(), 0.0f), 511);
}

// A scale below the normal floats has too few bits to divide by.
TEST(Int8Test, AUnitOfTinyNumbersBecomesZero) {
  for (const float tiny :
       {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), 1e-40f,
        1e-36f}) {
    EXPECT_EQ(Hex(Int8(), {tiny, -tiny, tiny}), "00000000000000") << tiny;
  }
  const std::vector<float> small = {1.6e-36f, -0.8e-36f};
  const std::vector<float> decoded = Decode(Int8(), 2, Encode(Int8(), small));
  EXPECT_NEAR(decoded[0] / small[0], 1, 1e-6);
  EXPECT_NEAR(decoded[1] / small[1], 1, 0.01);
}

// FLT_MAX / 127 is rounded up, so its product with 127 is infinite.
TEST(Int8Test, ADecodedNumberThatIsTooLargeIsNotFinite) {
  const std::string good = Encode(Int8(), {1, 3.4e38f, -3.4e38f});
  EXPECT_EQ(Int8().FirstNonFinite(3, good.data()), -1);
  for (const float value : Decode(Int8(), 3, good)) {
    EXPECT_TRUE(std::isfinite(value));
  }
  const std::string large = Encode(Int8(), {1, kLargest, -kLargest});
  EXPECT_EQ(Int8().FirstNonFinite(3, large.data()), 1);
  EXPECT_EQ(Decode(Int8(), 3, large)[1], kInfinity);
}

// Bytes that no encoder of this program writes.
TEST(Int8Test, AScaleThatIsNotFiniteIsFoundWithoutAMarkedElement) {
  for (const float scale : {kInfinity, -kInfinity, std::nanf("")}) {
    std::string bytes(7, '\0');
    std::memcpy(bytes.data(), &scale, sizeof scale);
    EXPECT_EQ(Int8().FirstNonFinite(3, bytes.data()), 0);
  }
  std::string lowest(5, '\x80');  // -128 times a scale near the limit
  const float scale = kLargest / 127.5f;
  std::memcpy(lowest.data(), &scale, sizeof scale);
  EXPECT_EQ(Int8().FirstNonFinite(1, lowest.data()), 0);
}

// ---- top_k

const Encoding& TopK(double fraction) {
  return *FindEncoding("top_k")->WithFraction(fraction);
}

TEST(TopKTest, AFractionIsTheNumberOfRecordsInAUnitRoundedUp) {
  EXPECT_EQ(TopK(0.01).Bytes(1024), 11 * 6);
  EXPECT_EQ(FindEncoding("top_k")->Bytes(1024), 11 * 6);
  EXPECT_EQ(TopK(0.01).Bytes(0), 0);
  EXPECT_EQ(TopK(0.01).Bytes(1), 6);
  EXPECT_EQ(TopK(0.01).Bytes(2 * 1024 + 100), 22 * 6 + 2 * 6);
  EXPECT_EQ(TopK(0.25).Bytes(1024), 256 * 6);
  EXPECT_EQ(TopK(1).Bytes(1000), 1000 * 6);
  EXPECT_EQ(TopK(1e-9).Bytes(1024), 6);
  // A plan with these is refused; nothing may break on the way there.
  for (const double fraction : {0.0, -1.0, std::nan("")}) {
    EXPECT_EQ(TopK(fraction).Bytes(1024), 6);
  }
  EXPECT_EQ(TopK(1e300).Bytes(1024), 1024 * 6);
  EXPECT_EQ(&TopK(0.5), &TopK(0.5));
  EXPECT_EQ(FindEncoding("int8")->WithFraction(0.5), FindEncoding("int8"));
}

// By hand: of eight elements the two largest, of three equal ones the first
// two. Indices 1 and 3, then -3 and 3.
TEST(TopKTest, WritesTheLargestInAscendingOrderAndTiesToTheLowerIndex) {
  const std::string hex = "01000300000040c000004040";
  EXPECT_EQ(Hex(TopK(0.25), {1, -3, 2, 3, 0, -3, 2.9f, -1}), hex);
  EXPECT_EQ(DecodeHex(TopK(0.25), 8, hex),
            (std::vector<float>{0, -3, 0, 3, 0, 0, 0, 0}));
  EXPECT_EQ(Hex(TopK(0.25), {0, 0, 0, 0, 0, 0, 0, -7}),
            "00000700000000000000e0c0");
}

TEST(TopKTest, ChoosesAsASortDoes) {
  for (const double fraction : {0.001, 0.01, 0.1, 0.5, 0.999, 1.0}) {
    for (const int64_t n : {1, 31, 33, 700, 1023, 1024}) {
      const std::vector<float> numbers = NumbersWithTies(n);
      std::vector<int> order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return std::abs(numbers[a]) > std::abs(numbers[b]);
      });
      std::vector<float> wanted(static_cast<size_t>(n));
      const int64_t k = TopK(fraction).Bytes(n) / 6;
      for (int64_t i = 0; i < k; ++i) wanted[order[i]] = numbers[order[i]];
      EXPECT_EQ(Decode(TopK(fraction), n, Encode(TopK(fraction), numbers)),
                wanted)
          << fraction << " " << n;
    }
  }
}

// There are more such numbers than records: the first ones are written.
TEST(TopKTest, NumbersThatAreNotFiniteComeFirst) {
  std::vector<float> numbers = NumbersWithTies(1024);
  for (size_t i = 100; i < 1024; ++i) {
    numbers[i] = i % 2 == 0 ? std::nanf("") : -kInfinity;
  }
  const std::string bytes = Encode(TopK(0.01), numbers);
  EXPECT_EQ(TopK(0.01).FirstNonFinite(1024, bytes.data()), 100);
}

// 20 elements have five records.
TEST(TopKTest, IndicesThatDoNotAscendWithinTheUnitAreMalformed) {
  const Encoding& encoding = TopK(0.25);
  const std::string good = Encode(encoding, std::vector<float>(20, 1.0f));
  ASSERT_EQ(good.size(), 30u);
  EXPECT_EQ(encoding.FirstMalformed(20, good.data()), -1);
  const auto with_index = [&](size_t record, uint16_t index) {
    std::string bytes = good;  // indices 0, 1, 2, 3 and 4
    std::memcpy(bytes.data() + 2 * record, &index, sizeof index);
    return bytes;
  };
  EXPECT_EQ(encoding.FirstMalformed(20, with_index(4, 19).data()), -1);
  for (const auto& [record, index] :
       {std::pair(4, 20), {4, 1024}, {4, 65535}, {2, 1}, {2, 0}, {0, 1}}) {
    const std::string bad = with_index(record, static_cast<uint16_t>(index));
    EXPECT_EQ(encoding.FirstMalformed(20, bad.data()), 0) << index;
    // Guards show that nothing is written outside.
    std::vector<float> values(22, 99);
    encoding.Decode(20, bad.data(), values.data() + 1);
    EXPECT_EQ(values.front(), 99);
    EXPECT_EQ(values.back(), 99);
  }
  std::string not_finite = with_index(4, 65535);
  std::memcpy(not_finite.data() + 26, &kInfinity, sizeof kInfinity);
  EXPECT_EQ(encoding.FirstNonFinite(20, not_finite.data()), 19);
}

TEST(TopKTest, ALaterUnitIsNamedByItsFirstElement) {
  const Encoding& encoding = TopK(0.01);
  std::string bytes = Encode(encoding, NumbersWithTies(3000));
  bytes[66 + 1] = '\x7f';  // an index of the second unit
  EXPECT_EQ(encoding.FirstMalformed(3000, bytes.data()), 1024);
}

// ---- one_bit

const Encoding& OneBit() { return *FindEncoding("one_bit"); }

TEST(OneBitTest, AUnitHasTwoMeansAndABitForEachElement) {
  EXPECT_EQ(OneBit().Bytes(0), 0);
  EXPECT_EQ(OneBit().Bytes(1), 9);
  EXPECT_EQ(OneBit().Bytes(9), 10);
  EXPECT_EQ(OneBit().Bytes(1024), 136);
  EXPECT_EQ(OneBit().Bytes(1025), 136 + 9);
}

// By hand: (1 + 3 + 2 + 1.5 + 0) / 5 = 1.5, (-2 - 6 - 1 - 3) / 4 = -3; elements
// 0, 1, 3, 6 and, in the second byte, 8 are not negative.
TEST(OneBitTest, WritesTheMeanOfEachSign) {
  const std::string hex = "0000c03f000040c04b01";
  EXPECT_EQ(Hex(OneBit(), {1, 3, -2, 2, -6, -1, 1.5f, -3, 0}),
            "0000c03f000040c04b01");
  EXPECT_EQ(DecodeHex(OneBit(), 9, hex),
            (std::vector<float>{1.5f, 1.5f, -3, 1.5f, -3, -3, 1.5f, -3, 1.5f}));
}

TEST(OneBitTest, TheMeanOfNoElementIsZero) {
  EXPECT_EQ(Hex(OneBit(), {2, 4}), "000040400000000003");
  EXPECT_EQ(Hex(OneBit(), {-2, -4}), "00000000000040c000");
  EXPECT_EQ(Hex(OneBit(), {0, -0.0f}), "000000000000000003");
}

// Against sums over the whole unit, for every length of the last lanes.
TEST(OneBitTest, TheMeansAreThoseOfAllElements) {
  for (int64_t n = 1; n <= 1024; n = n < 40 ? n + 1 : 2 * n) {
    const std::vector<float> numbers = NumbersWithTies(n);
    double sums[2] = {}, counts[2] = {};
    for (const float x : numbers) {
      sums[x < 0] += x;
      counts[x < 0] += 1;
    }
    const std::vector<float> decoded =
        Decode(OneBit(), n, Encode(OneBit(), numbers));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const bool negative = numbers[i] < 0;
      EXPECT_EQ(decoded[i],
                static_cast<float>(sums[negative] / counts[negative]))
          << n << " " << i;
    }
  }
}

TEST(OneBitTest, TheSumOfLargeNumbersDoesNotOverflow) {
  const std::vector<float> large(1024, kLargest);
  EXPECT_EQ(Decode(OneBit(), 1024, Encode(OneBit(), large)), large);
}

// Bytes that no encoder of this program writes.
TEST(OneBitTest, AMeanThatIsNotFiniteIsFoundWithoutAnElement) {
  const std::string bytes = absl::HexStringToBytes("0000807f0000000000");
  EXPECT_EQ(OneBit().FirstNonFinite(3, bytes.data()), 0);
  const std::string two = absl::HexStringToBytes("0000807f0000000004");
  EXPECT_EQ(OneBit().FirstNonFinite(3, two.data()), 2);
}

}  // namespace
}  // namespace tributary
