// SPDX-License-Identifier: Apache-2.0
#include "common/files/safetensors.h"

#include <sys/stat.h>

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "gmock/gmock.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// Length, header and that many bytes of data.
std::string File(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + std::string(data_bytes, '\0');
}

std::string Tensor(const std::string& name, const std::string& shape,
                   const std::string& offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"F32\",\"shape\":", shape,
                      ",\"data_offsets\":", offsets, "}");
}

class SafetensorsTest : public testing::TemporaryFolderTest {
 protected:
  // The error of opening a file of these bytes, after the path.
  std::string ErrorOf(const std::string& bytes) const {
    const auto reader = SafetensorsReader::Open(Write("x", bytes));
    EXPECT_FALSE(reader.ok());
    return std::string(reader.status().message()).substr(Path("x").size() + 2);
  }
};

TEST_F(SafetensorsTest, WritesTheFormatByteByByte) {
  const std::vector<float> weight = {1, 2}, bias = {3};
  ASSERT_TRUE(WriteSafetensors(Path("x"),
                               {{"0.weight", {1, 2}}, {"0.bias", {1}}},
                               {weight.data(), bias.data()})
                  .ok());
  const std::string header =
      R"({"0.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("0.bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  const std::string padded =
      header + std::string((8 - header.size() % 8) % 8, ' ');
  std::string expected = File(padded, 12);
  const float values[] = {1, 2, 3};
  std::memcpy(expected.data() + 8 + padded.size(), values, sizeof(values));
  EXPECT_EQ(Read("x"), expected);
  EXPECT_EQ(padded.size() % 8, 0u);
}

TEST_F(SafetensorsTest, ReadsBackInTheOrderThatIsAskedFor) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {7};
  ASSERT_TRUE(WriteSafetensors(Path("x"), {{"a", {2, 3}}, {"b", {}}},
                               {a.data(), b.data()})
                  .ok());
  const auto tensors = ReadSafetensors(Path("x"), {{"b", {}}, {"a", {2, 3}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(*tensors, ElementsAre(b, a));
}

TEST_F(SafetensorsTest, TheWeightsDigestIsThatOfWhatFollowsTheHeader) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {7};
  const ParameterSpecs specs = {{"a", {2, 3}}, {"b", {}}};
  const std::vector<const float*> data = {a.data(), b.data()};
  ASSERT_TRUE(WriteSafetensors(Path("x"), specs, data).ok());
  const std::string file = Read("x");
  uint64_t header;
  std::memcpy(&header, file.data(), sizeof(header));
  Sha256 sha256;
  sha256.Update(file.data() + 8 + header, file.size() - 8 - header);
  EXPECT_EQ(sha256.HexDigest(), WeightsSha256(specs, data));
}

TEST_F(SafetensorsTest, AWriterTakesPiecesAndCountsThem) {
  auto writer = SafetensorsWriter::Create(Path("x"), {{"a", {3}}, {"b", {1}}});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append({1.0f}).ok());
  EXPECT_EQ((*writer)->Commit().message(),
            Path("x") + ": 3 values are missing");
  ASSERT_TRUE((*writer)->Append({2.0f, 3.0f, 4.0f}).ok());
  EXPECT_EQ((*writer)->Append({5.0f}).message(),
            Path("x") + ": wants 0 more values, got 1");
  ASSERT_TRUE((*writer)->Commit().ok());
  const auto tensors = ReadSafetensors(Path("x"), {{"a", {3}}, {"b", {1}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(*tensors, ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4)));
}

TEST_F(SafetensorsTest, OneNameForTwoTensorsIsNotWritten) {
  EXPECT_EQ(SafetensorsWriter::Create(Path("x"), {{"a", {1}}, {"a", {1}}})
                .status()
                .message(),
            Path("x") + ": two tensors are named \"a\"");
  EXPECT_EQ(
      SafetensorsWriter::Create(Path("x"), {{"\xff", {1}}}).status().message(),
      Path("x") + ": a tensor's name is not UTF-8");
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(SafetensorsTest, ReadsFilesOfOtherWriters) {
  // Metadata, any order of names, spaces, an empty tensor.
  const std::string header = "{\"__metadata__\": {\"format\": \"pt\"}, " +
                             Tensor("b", "[2]", "[4, 12]") + ", " +
                             Tensor("e", "[0,7]", "[12,12]") + "," +
                             Tensor("a", "[]", "[0, 4]") + "}   ";
  const auto reader = SafetensorsReader::Open(Write("x", File(header, 12)));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->tensors(),
            (ParameterSpecs{{"a", {}}, {"b", {2}}, {"e", {0, 7}}}));
}

TEST_F(SafetensorsTest, AFileThatIsNoneIsRefusedWithThePlace) {
  EXPECT_EQ(ErrorOf("1234567"),
            "not a safetensors file: wants at least 8 bytes, got 7");
  EXPECT_EQ(ErrorOf(""),
            "not a safetensors file (looks like an empty file): wants at least "
            "8 bytes, got 0");
  EXPECT_EQ(ErrorOf(File("{}", 0) + std::string(4, 'x')),
            "the tensors end at data byte 0, the file holds 4 bytes of data");
  EXPECT_EQ(
      ErrorOf(std::string(8, '\xff')),
      "not a safetensors file: byte 0: wants a header of at most 0 bytes, "
      "got 18446744073709551615");
  EXPECT_EQ(ErrorOf(File("{\"a\":}", 0)), "byte 13: the header is no JSON");
  EXPECT_EQ(ErrorOf(File("[1]", 0)), "the header wants a JSON object");
  EXPECT_EQ(ErrorOf(File("{\"a\xff\":1}", 0)),
            "byte 11: the header is no JSON");
  EXPECT_EQ(ErrorOf(File("{\"a\":1}", 0)), "tensor \"a\" wants a JSON object");
}

TEST_F(SafetensorsTest, WrongEntriesAreRefused) {
  const auto one = [&](const std::string& shape, const std::string& offsets) {
    return ErrorOf(File("{" + Tensor("a", shape, offsets) + "}", 8));
  };
  EXPECT_EQ(one("[2]", "[0,12]"),
            "tensor \"a\" has data_offsets 0 to 12, the file holds 8 bytes of "
            "data");
  EXPECT_EQ(one("[2]", "[8,0]"),
            "tensor \"a\" has data_offsets 8 to 0, the file holds 8 bytes of "
            "data");
  EXPECT_EQ(one("[3]", "[0,8]"),
            "tensor \"a\" of shape [3] wants 12 bytes, its data_offsets hold "
            "8");
  EXPECT_EQ(one("[1]", "[4,8]"),
            "tensor \"a\" begins at data byte 4, the tensors before it end at "
            "0");
  EXPECT_EQ(one("[1]", "[0,4]"),
            "the tensors end at data byte 4, the file holds 8 bytes of data");
  EXPECT_EQ(one("[-1]", "[0,8]"),
            "tensor \"a\" wants whole numbers in its shape");
  EXPECT_EQ(one("[1.5]", "[0,8]"),
            "tensor \"a\" wants whole numbers in its shape");
  EXPECT_EQ(one("2", "[0,8]"), "tensor \"a\" wants a shape");
  EXPECT_EQ(one("[2]", "[0]"), "tensor \"a\" wants two data_offsets");
  EXPECT_EQ(one("[2]", "[0,\"8\"]"), "tensor \"a\" wants two data_offsets");
  EXPECT_EQ(one("[18446744073709551615,2]", "[0,8]"),
            "tensor \"a\" has a shape larger than the file");
  EXPECT_EQ(one("[8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8]", "[0,8]"),
            "tensor \"a\" has a shape larger than the file");
}

TEST_F(SafetensorsTest, OtherFormatsAreNamed) {
  const std::string rest(200, 'x');
  const std::vector<std::pair<std::string, std::string>> files = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
       "a Git LFS pointer; fetch the file itself with git lfs pull"},
      {"\n <!DOCTYPE html><html>" + rest, "an HTML page"},
      {"<html>" + rest, "an HTML page"},
      {"PK\x03\x04" + rest, "a zip archive, such as torch.save"},
      {"\x80\x02" + rest, "a pickle of Python"},
      {"GGUF" + rest, "a GGUF file"},
      {"\x89HDF\r\n\x1a\n" + rest, "an HDF5 file"},
      {"\x1f\x8b" + rest, "gzip; unpack it"},
      {"\x93NUMPY" + rest, "an NPY file"},
      {"{\"metadata\": {}, \"weight_map\": {}}", "JSON, such as the index"},
      {"PK\x03", ""}};
  for (const auto& [bytes, name] : files) {
    EXPECT_THAT(
        ErrorOf(bytes),
        StartsWith(name.empty() ? "not a safetensors file: "
                                : "not a safetensors file (looks like " + name))
        << bytes;
  }
}

TEST_F(SafetensorsTest, OverlapsAndDoubledNamesAreRefused) {
  EXPECT_EQ(ErrorOf(File("{\"a\":{\"shape\":[2],\"data_offsets\":[0,4]}}", 4)),
            "tensor \"a\" wants a dtype");
  EXPECT_EQ(ErrorOf(File("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],"
                         "\"data_offsets\":[0,8]}}",
                         8)),
            "tensor \"a\" of shape [2] wants 4 bytes, its data_offsets hold "
            "8");
  EXPECT_EQ(ErrorOf(File("{" + Tensor("a", "[2]", "[0,8]") + "," +
                             Tensor("b", "[2]", "[4,12]") + "}",
                         12)),
            "tensor \"b\" begins at data byte 4, the tensors before it end at "
            "8");
  EXPECT_EQ(ErrorOf(File("{" + Tensor("a", "[1]", "[0,4]") + "," +
                             Tensor("a", "[1]", "[4,8]") + "}",
                         8)),
            "two tensors are named \"a\"");
}

// The bits follow from IEEE 754: in float16, 0x3c00 is 1, 0xc500 is -5, 0x0001
// is 2^-24 and 0x7c00 is infinity; a bfloat16 is the upper half of a float32.
TEST_F(SafetensorsTest, HalfPrecisionBecomesFloat32) {
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})";
  std::string file = File(header, 14);
  const uint16_t halves[] = {0x3c00, 0xc500, 0x0001, 0x7c00,
                             0x3f80, 0xc0a0, 0x4049};
  std::memcpy(file.data() + 8 + header.size(), halves, sizeof(halves));
  Write("x", file);
  const auto tensors = ReadSafetensors(Path("x"), {{"h", {4}}, {"b", {3}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(*tensors, ElementsAre(ElementsAre(1, -5, 0x1p-24f, infinity),
                                    ElementsAre(1, -5, 3.140625f)));
}

// Longer than the piece that is converted at once.
TEST_F(SafetensorsTest, ALongTensorOfHalvesIsReadWhole) {
  constexpr int kSize = 200'001;
  const std::string header =
      absl::StrCat("{\"a\":{\"dtype\":\"BF16\",\"shape\":[", kSize,
                   "],\"data_offsets\":[0,", 2 * kSize, "]}}");
  std::string file = File(header, 2 * kSize);
  std::vector<float> expected;
  for (int i = 0; i < kSize; ++i) {
    const auto half = static_cast<uint16_t>(0x3f80 + i % 127);
    std::memcpy(file.data() + 8 + header.size() + 2 * i, &half, sizeof(half));
    expected.push_back(1 + static_cast<float>(i % 127) / 128);
  }
  Write("x", file);
  const auto tensors = ReadSafetensors(Path("x"), {{"a", {kSize}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ((*tensors)[0], expected);
}

TEST_F(SafetensorsTest, OnlyReadingATensorOfAnotherTypeIsAnError) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("n":{"dtype":"I64","shape":[],"data_offsets":[4,12]}})";
  const auto reader = SafetensorsReader::Open(Write("x", File(header, 12)));
  ASSERT_TRUE(reader.ok()) << reader.status();
  float value = 1;
  EXPECT_TRUE(reader->Read(0, {&value, 1}).ok());
  EXPECT_EQ(value, 0);
  EXPECT_EQ(reader->Read(1, {&value, 1}),
            absl::InvalidArgumentError(
                Path("x") +
                ": tensor \"n\" wants dtype F32, F16 or BF16, got \"I64\""));
}

// Half a byte for each value, a type that no list here knows, and two floats.
TEST_F(SafetensorsTest, ATensorThatIsNotReadMayHaveAnyType) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("f":{"dtype":"F4","shape":[3,2],"data_offsets":[4,7]},)"
      R"("n":{"dtype":"NEW","shape":[2],"data_offsets":[7,12]},)"
      R"("c":{"dtype":"C64","shape":[1],"data_offsets":[12,20]}})";
  const auto reader = SafetensorsReader::Open(Write("x", File(header, 20)));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->CheckType(0).ok());
  std::vector<float> values(6);
  EXPECT_EQ(reader->Read(1, absl::MakeSpan(values)),
            absl::InvalidArgumentError(
                Path("x") +
                ": tensor \"f\" wants dtype F32, F16 or BF16, got \"F4\""));
}

TEST_F(SafetensorsTest, StartWeightsThatAreNotFiniteAreNamed) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {1, 2}, b = {3, -infinity};
  ASSERT_TRUE(WriteSafetensors(Path("x"), {{"a", {2}}, {"b", {2}}},
                               {a.data(), b.data()})
                  .ok());
  const auto reader = SafetensorsReader::Open(Path("x"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<float> values(2);
  EXPECT_TRUE(reader->ReadFinite(0, absl::MakeSpan(values)).ok());
  EXPECT_EQ(reader->ReadFinite(1, absl::MakeSpan(values)),
            absl::InvalidArgumentError(
                Path("x") +
                ": tensor \"b\" has -inf at element 1, wanted finite numbers"));
  EXPECT_TRUE(reader->Read(1, absl::MakeSpan(values)).ok());
}

TEST_F(SafetensorsTest, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(SafetensorsReader::Open(Path("pipe")).status().message(),
            Path("pipe") + ": no regular file");
}

TEST_F(SafetensorsTest, AMissingFileIsNotFound) {
  EXPECT_EQ(SafetensorsReader::Open(Path("x")).status(),
            absl::NotFoundError(Path("x") + ": No such file or directory"));
}

TEST_F(SafetensorsTest, AFileThatShrinksIsDataLoss) {
  const std::vector<float> a(4096, 1.0f);
  ASSERT_TRUE(WriteSafetensors(Path("x"), {{"a", {4096}}}, {a.data()}).ok());
  const auto reader = SafetensorsReader::Open(Path("x"));
  ASSERT_TRUE(reader.ok());
  std::filesystem::resize_file(Path("x"), 1024);
  std::vector<float> values(4096);
  EXPECT_EQ(reader->Read(0, absl::MakeSpan(values)).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(SafetensorsTest, TensorsThatAreNotTheModelsAreNamed) {
  const std::vector<float> a = {1, 2};
  ASSERT_TRUE(WriteSafetensors(Path("x"), {{"a", {2}}}, {a.data()}).ok());
  const auto error = [&](const ParameterSpecs& specs) {
    return std::string(ReadSafetensors(Path("x"), specs).status().message())
        .substr(Path("x").size() + 2);
  };
  EXPECT_EQ(error({{"a", {2}}, {"b", {1}}}),
            "wants a tensor \"b\" of shape [1], there is none");
  EXPECT_EQ(error({{"a", {1, 2}}}),
            "wants tensor \"a\" of shape [1, 2], got [2]");
  EXPECT_EQ(error({}), "has a tensor \"a\" that the model lacks");
}

TEST_F(SafetensorsTest, DeepAndWideHeadersDoNotAbort) {
  ErrorOf(File(std::string(1 << 20, '['), 0));
  std::string wide = "[";
  for (int i = 0; i < 100'000; ++i) wide += "[],";
  ErrorOf(File("{\"a\":" + wide + "1]}", 0));
}

}  // namespace
}  // namespace tributary
