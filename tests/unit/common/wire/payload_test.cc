#include "common/wire/payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/wire/crc32c.h"

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
      const float* got = reader.Next(n, scratch.data());
      for (int i = 0; i < n; ++i) EXPECT_EQ(got[i], begin + i);
      begin += n;
    }
  }
}

TEST(FloatReaderTest, ReadsAlignedPiecesInPlace) {
  const Cut cut = MakeCut(64, {32 * sizeof(float)}, 0);
  FloatReader reader(cut.payload);
  std::vector<float> scratch(64);
  EXPECT_NE(reader.Next(32, scratch.data()), scratch.data());
  EXPECT_NE(reader.Next(16, scratch.data()), scratch.data());
}

TEST(FloatReaderTest, CopyNextAndNextShareThePosition) {
  const Cut cut = MakeCut(10, {5}, 0);
  FloatReader reader(cut.payload);
  float copy[4], scratch[6];
  reader.CopyNext(4, copy);
  EXPECT_EQ(copy[3], 3.0f);
  EXPECT_EQ(reader.Next(6, scratch)[5], 9.0f);
}

TEST(PayloadTest, ChecksumAndCopyDoNotDependOnThePieces) {
  const Cut whole = MakeCut(50, {}, 0);
  const Cut pieces = MakeCut(50, {3, 100, 101}, 1);
  EXPECT_EQ(whole.payload.Crc32c(), pieces.payload.Crc32c());
  EXPECT_EQ(whole.payload.Crc32c(),
            Crc32c(whole.floats.data(), 50 * sizeof(float)));
  std::vector<float> copy(50);
  pieces.payload.CopyTo(copy.data());
  EXPECT_EQ(copy, whole.floats);
}

}  // namespace
}  // namespace tributary
