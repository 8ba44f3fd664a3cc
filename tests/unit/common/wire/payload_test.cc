// SPDX-License-Identifier: Apache-2.0
#include "common/wire/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/clones.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// The bytes of 0, 1, ..., n - 1 as floats, cut at the given byte positions and
// shifted by `shift` bytes of memory.
struct Cut {
  std::vector<float> floats;
  Payload payload;
};
Cut MakeCut(int n, const std::vector<size_t>& at, size_t shift) {
  Cut cut;
  cut.floats.resize(n);
  std::iota(cut.floats.begin(), cut.floats.end(), 0.0f);
  auto memory = std::make_shared<std::string>(shift, '?');
  memory->append(reinterpret_cast<const char*>(cut.floats.data()),
                 n * sizeof(float));
  std::vector<Payload::Piece> pieces;
  size_t from = 0;
  for (size_t to : at) {
    pieces.emplace_back(memory->data() + shift + from, to - from);
    from = to;
  }
  pieces.emplace_back(memory->data() + shift + from, n * sizeof(float) - from);
  cut.payload = Payload(std::move(pieces), memory);
  return cut;
}

TEST(FloatReaderTest, ReadsFloatsThatStraddlePieces) {
  for (size_t shift = 0; shift < 4; ++shift) {
    const Cut cut = MakeCut(100, {1, 2, 2, 6, 203, 399}, shift);
    FloatReader reader(cut.payload);
    std::vector<float> scratch(40);
    for (int begin = 0; begin < 100;) {
      const int n = std::min(33, 100 - begin);
      const UnalignedFloat* got = reader.Next(n, scratch.data());
      for (int i = 0; i < n; ++i) EXPECT_EQ(float{got[i]}, begin + i);
      begin += n;
    }
  }
}

TEST(FloatReaderTest, ReadsInPlaceWhatOnePieceHoldsAtAnyAddress) {
  const Cut cut = MakeCut(64, {32 * sizeof(float)}, 1);
  FloatReader reader(cut.payload);
  std::vector<float> scratch(64);
  EXPECT_NE(reader.Next(32, scratch.data()), scratch.data());
  EXPECT_NE(reader.Next(16, scratch.data()), scratch.data());
}

TEST(FloatReaderTest, RunsEndWithTheirPiece) {
  const Cut cut = MakeCut(30, {6, 7, 47}, 0);
  FloatReader reader(cut.payload);
  std::vector<size_t> sizes;
  float scratch = 0;
  for (int begin = 0; begin < 30; begin += static_cast<int>(sizes.back())) {
    const auto run = reader.NextRun(30 - begin, &scratch);
    sizes.push_back(run.size());
    const UnalignedFloat* const got = run.data();
    for (size_t i = 0; i < run.size(); ++i) EXPECT_EQ(float{got[i]}, begin + i);
  }
  // 0 | bytes 4 to 7, in three pieces | 8 to 46 | 44 to 47 | the rest
  EXPECT_THAT(sizes, ::testing::ElementsAre(1, 1, 9, 1, 18));
}

TEST(FloatReaderTest, CopyNextAndNextShareThePosition) {
  const Cut cut = MakeCut(10, {5}, 0);
  FloatReader reader(cut.payload);
  float copy[4], scratch[6];
  EXPECT_EQ(reader.CopyNext(4, copy, /*crc=*/0),
            Crc32c(cut.floats.data(), 4 * sizeof(float)));
  EXPECT_EQ(copy[3], 3.0f);
  const UnalignedFloat* const rest = reader.Next(6, scratch);
  EXPECT_EQ(float{rest[5]}, 9.0f);
}

TEST(FloatReaderTest, CopyNextExtendsAChecksumOverManyParts) {
  const Cut cut = MakeCut(20'000, {7, 30'001}, 3);
  FloatReader reader(cut.payload);
  std::vector<float> copy(20'000);
  const uint32_t crc = reader.CopyNext(9'999, copy.data(), 0);
  EXPECT_EQ(reader.CopyNext(10'001, copy.data() + 9'999, crc),
            Crc32c(cut.floats.data(), 20'000 * sizeof(float)));
  EXPECT_EQ(copy, cut.floats);
}

TEST(PayloadTest, ScanFindsTheFirstFloatThatIsNoNumberWhereverPiecesEnd) {
  const float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                        -std::numeric_limits<float>::infinity()};
  for (const float bad : kBad) {
    for (const size_t at : {0u, 1u, 4'999u, 9'000u}) {
      std::vector<float> floats(9'001, 1.0f);
      floats[at] = floats.back() = bad;
      const auto bytes = std::make_shared<std::string>(
          reinterpret_cast<const char*>(floats.data()),
          floats.size() * sizeof(float));
      const size_t cut = at * sizeof(float) + 2;  // within it
      const Payload payload(
          {{bytes->data(), cut}, {bytes->data() + cut, bytes->size() - cut}},
          bytes);
      EXPECT_EQ(payload.ScanFloats().first_nonfinite, at);
    }
  }
  EXPECT_EQ(MakeCut(50, {3, 9}, 1).payload.ScanFloats().first_nonfinite, -1);
}

// A damaged message may end within a float.
TEST(PayloadTest, ScanChecksumsBytesThatAreNoWholeFloat) {
  for (size_t n = 0; n < 20; ++n) {
    const std::string bytes(n, 'x');
    EXPECT_EQ(Payload::Copy(bytes.data(), n).ScanFloats().crc32c,
              Crc32c(bytes.data(), n));
  }
}

TEST(PayloadTest, ChecksumAndCopyDoNotDependOnThePieces) {
  const Cut whole = MakeCut(50, {}, 0);
  const Cut pieces = MakeCut(50, {3, 100, 101}, 1);
  EXPECT_EQ(whole.payload.ScanFloats().crc32c,
            pieces.payload.ScanFloats().crc32c);
  EXPECT_EQ(whole.payload.ScanFloats().crc32c,
            Crc32c(whole.floats.data(), 50 * sizeof(float)));
  std::vector<float> copy(50);
  pieces.payload.CopyTo(copy.data());
  EXPECT_EQ(copy, whole.floats);
}

}  // namespace
}  // namespace tributary
