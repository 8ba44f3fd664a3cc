// SPDX-License-Identifier: Apache-2.0
#include "common/files/sha256.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

// The examples of FIPS 180-4 (csrc.nist.gov, SHA256.pdf).
constexpr char kAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kTwoBlocks[] =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
constexpr char kEmpty[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string Digest(const std::string& text) {
  Sha256 sha256;
  sha256.Update(text.data(), text.size());
  return sha256.HexDigest();
}

TEST(Sha256Test, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(Digest(""), kEmpty);
  EXPECT_EQ(Digest("abc"), kAbc);
  EXPECT_EQ(Digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            kTwoBlocks);
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Sha256 sha256;
  sha256.Update("a", 1);
  sha256.Update("", 0);
  sha256.Update("bc", 2);
  EXPECT_EQ(sha256.HexDigest(), kAbc);
}

// Digest by: printf '\0\0\200\77\0\0\0\300\0\0\0\77' | sha256sum
constexpr char kOfWeightAndBias[] =
    "2ce4bdb6b34a50ac7092eb9fee94337a27498e9eb9bae44192f15b88831b2422";

TEST(WeightsSha256Test, IsThatOfTheFloatBytesInOrder) {
  const std::vector<float> weight = {1.0f, -2.0f}, bias = {0.5f};
  const ParameterSpecs specs = {{"0.weight", {1, 2}}, {"0.bias", {1}}};
  EXPECT_EQ(WeightsSha256(specs, {weight.data(), bias.data()}),
            kOfWeightAndBias);
  const ParameterSpecs swapped = {specs[1], specs[0]};
  EXPECT_NE(WeightsSha256(swapped, {bias.data(), weight.data()}),
            kOfWeightAndBias);
}

class WeightsSha256OfFileTest : public testing::TemporaryFolderTest {};

TEST_F(WeightsSha256OfFileTest, IsInTheOrderOfTheSpecs) {
  const std::vector<float> weight = {1.0f, -2.0f}, bias = {0.5f};
  const ParameterSpecs specs = {{"0.weight", {1, 2}}, {"0.bias", {1}}};
  const std::string path = Path("weights.safetensors");
  TRIBUTARY_ASSERT_OK(WriteSafetensors(path, {specs[1], specs[0]},
                                       {bias.data(), weight.data()}));
  const auto reader = SafetensorsReader::Open(path);
  TRIBUTARY_ASSERT_OK(reader);
  EXPECT_EQ(WeightsSha256(*reader, specs).value(), kOfWeightAndBias);
  EXPECT_THAT(WeightsSha256(*reader, {specs[0]}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "that the model lacks"));
}

}  // namespace
}  // namespace tributary
