// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/gradient_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// Three slices, of which the second stays float32.
Block MakeBlock(const char* format) {
  Block block;
  for (int64_t size : {3001, 5, 2500}) {
    Slice slice;
    slice.parameter = static_cast<int>(block.slices.size());
    slice.end = size;
    slice.offset = block.size;
    if (slice.parameter != 1) slice.encoding = FindEncoding(format);
    block.size += size;
    block.slices.push_back(slice);
  }
  return block;
}

// Numbers that every format without compression holds exactly.
std::vector<float> Numbers(const Block& block) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < block.size; ++i) {
    numbers.push_back(static_cast<float>(i % 251 - 125) / 64);
  }
  return numbers;
}

std::string Encode(const Block& block, const std::vector<float>& numbers) {
  std::string bytes;
  for (const Slice& slice : block.slices) {
    std::string part(static_cast<size_t>(slice.gradient_bytes()), '?');
    slice.encoding->Encode(slice.size(), numbers.data() + slice.offset,
                           part.data());
    bytes += part;
  }
  return bytes;
}

std::vector<float> Decode(const Block& block, const std::string& bytes) {
  std::vector<float> numbers(static_cast<size_t>(block.size));
  const char* in = bytes.data();
  for (const Slice& slice : block.slices) {
    slice.encoding->Decode(slice.size(), in, numbers.data() + slice.offset);
    in += slice.gradient_bytes();
  }
  return numbers;
}

// In pieces of `piece` bytes.
Payload InPieces(const std::string& bytes, size_t piece) {
  auto memory = std::make_shared<std::string>(bytes);
  std::vector<Payload::Piece> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    pieces.emplace_back(memory->data() + at,
                        std::min(piece, bytes.size() - at));
  }
  return Payload(std::move(pieces), memory);
}

class GradientReaderTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GradientReaderTest, ReadsWhatWasEncodedThroughAnyPieces) {
  const Block block = MakeBlock(GetParam());
  const std::string bytes = Encode(block, Numbers(block));
  EXPECT_EQ(bytes.size(), static_cast<size_t>(block.gradient_bytes()));
  const std::vector<float> numbers = Decode(block, bytes);
  if (!block.slices[0].encoding->compresses()) {
    EXPECT_EQ(numbers, Numbers(block));
  }
  for (size_t piece : {1u, 7u, 4096u, 100'000u}) {
    const Payload payload = InPieces(bytes, piece);
    for (int64_t step : {1, 1000, 2048, 5506}) {
      GradientReader reader(block, payload);
      std::vector<float> got, scratch(5506);
      for (int64_t at = 0; at < block.size; at += step) {
        const int64_t n = std::min(step, block.size - at);
        const float* run = reader.Next(n, scratch.data());
        const size_t before = got.size();
        got.resize(before + static_cast<size_t>(n));
        std::memcpy(got.data() + before, run, sizeof(float) * n);
      }
      EXPECT_EQ(got, numbers) << piece << " " << step;
    }
  }
}

TEST_P(GradientReaderTest, AScanFindsTheChecksumAndTheFirstThatIsNotFinite) {
  const Block block = MakeBlock(GetParam());
  const std::vector<float> numbers = Numbers(block);
  for (size_t piece : {5u, 100'000u}) {
    const std::string good = Encode(block, numbers);
    const GradientScan scan = ScanGradient(block, InPieces(good, piece));
    EXPECT_EQ(scan.crc32c, Crc32c(good.data(), good.size()));
    EXPECT_EQ(scan.first_nonfinite, -1);
    EXPECT_EQ(scan.first_malformed, -1);
    for (size_t at : {0u, 2999u, 3002u, 3007u, 5505u}) {
      std::vector<float> bad = numbers;
      bad[at] = std::numeric_limits<float>::infinity();
      bad[5505] = std::nanf("");
      const std::string bytes = Encode(block, bad);
      const GradientScan found = ScanGradient(block, InPieces(bytes, piece));
      EXPECT_EQ(found.crc32c, Crc32c(bytes.data(), bytes.size()));
      EXPECT_EQ(found.first_nonfinite, static_cast<int64_t>(at));
      EXPECT_EQ(found.first_malformed, -1);
    }
  }
}

TEST_P(GradientReaderTest, APayloadOfAnotherSizeStillHasItsChecksum) {
  const Block block = MakeBlock(GetParam());
  const std::string bytes = Encode(block, Numbers(block)) + "x";
  EXPECT_EQ(ScanGradient(block, InPieces(bytes, 64)).crc32c,
            Crc32c(bytes.data(), bytes.size()));
  EXPECT_EQ(ScanGradient(block, Payload()).crc32c, 0u);
}

// They are in the last unit of the third slice; the slice begins at element
// 3006.
TEST(TopKScanTest, IndicesThatDoNotAscendAreFound) {
  const Block block = MakeBlock("top_k");
  std::string bytes = Encode(block, Numbers(block));
  const int64_t last_unit = block.slices[2].encoding->Bytes(2500 - 2 * 1024);
  std::memset(bytes.data() + bytes.size() - last_unit, 0, 4);
  for (size_t piece : {5u, 100'000u}) {
    const GradientScan scan = ScanGradient(block, InPieces(bytes, piece));
    EXPECT_EQ(scan.first_malformed, 3006 + 2 * 1024);
    EXPECT_EQ(scan.first_nonfinite, -1);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GradientReaderTest,
                         ::testing::Values("float32", "bfloat16", "float16",
                                           "int8", "top_k", "one_bit"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tributary
