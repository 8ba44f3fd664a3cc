// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/event_file.h"

#include <cstring>

#include "common/wire/crc32c/crc32c.h"
#include "tests/testing/temporary_folder.h"
#include "tributary/v1/tensorboard.pb.h"

namespace tributary {
namespace {

// Checks as a reader of TFRecords does: undoes the mask, then compares.
bool ChecksumMatches(const std::string& masked, const std::string& data) {
  uint32_t value = 0;
  std::memcpy(&value, masked.data(), 4);
  const uint32_t rotated = value - 0xa282ead8u;
  return (rotated >> 17 | rotated << 15) == Crc32c(data.data(), data.size());
}

// The records' data; stops at the first damage.
std::vector<std::string> ReadRecords(const std::string& bytes) {
  std::vector<std::string> records;
  size_t at = 0;
  while (bytes.size() - at >= 16) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    if (!ChecksumMatches(bytes.substr(at + 8, 4), bytes.substr(at, 8)) ||
        length > bytes.size() - at - 16) {
      break;
    }
    const std::string data = bytes.substr(at + 12, length);
    if (!ChecksumMatches(bytes.substr(at + 12 + length, 4), data)) break;
    records.push_back(data);
    at += 16 + length;
  }
  return records;
}

std::string OnlyFile(const std::string& folder) {
  return std::filesystem::directory_iterator(folder)->path().filename();
}

using EventFileTest = testing::TemporaryFolderTest;

TEST_F(EventFileTest, BeginsWithTheVersionThatTensorBoardLooksFor) {
  auto file = EventFile::Create(folder(), 1700000000.5).value();
  const std::string name = OnlyFile(folder());
  EXPECT_EQ(name.rfind("events.out.tfevents.1700000000.", 0), 0u) << name;
  const auto records = ReadRecords(Read(name));
  ASSERT_EQ(records.size(), 1u);
  v1::TensorBoardEvent event;
  ASSERT_TRUE(event.ParseFromString(records[0]));
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  EXPECT_EQ(event.wall_time(), 1700000000.5);
}

TEST_F(EventFileTest, ScalarsComeBackByTagAndStep) {
  auto file = EventFile::Create(folder(), 1700000000).value();
  file->Add(7, 1700000001.25, {{"train/loss", 0.5}, {"test/auc", 0.75}});
  file->Add(8, 1700000002, {{"train/loss", 0.25}});
  ASSERT_TRUE(file->Flush().ok());
  const auto records = ReadRecords(Read(OnlyFile(folder())));
  ASSERT_EQ(records.size(), 3u);
  v1::TensorBoardEvent event;
  ASSERT_TRUE(event.ParseFromString(records[1]));
  EXPECT_EQ(event.step(), 7);
  EXPECT_EQ(event.wall_time(), 1700000001.25);
  ASSERT_EQ(event.summary().value_size(), 2);
  EXPECT_EQ(event.summary().value(0).tag(), "test/auc");
  EXPECT_EQ(event.summary().value(0).simple_value(), 0.75f);
  EXPECT_EQ(event.summary().value(1).tag(), "train/loss");
  ASSERT_TRUE(event.ParseFromString(records[2]));
  EXPECT_EQ(event.step(), 8);
}

TEST_F(EventFileTest, DamageIsSeenByTheReader) {
  std::string bytes = EncodeRecord("one") + EncodeRecord("two");
  ASSERT_EQ(ReadRecords(bytes).size(), 2u);
  bytes[12] ^= 1;  // the first record's first byte
  EXPECT_TRUE(ReadRecords(bytes).empty());
}

// Event(wall_time=1.0, step=2, summary=[value(tag="a", simple_value=1.0)]),
// field by field by the numbers in TensorBoard's protos.
TEST_F(EventFileTest, FieldNumbersAreTensorBoards) {
  v1::TensorBoardEvent event;
  event.set_wall_time(1.0);
  event.set_step(2);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag("a");
  value->set_simple_value(1.0f);
  const char expected[] =
      "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f"  // 1: fixed64
      "\x10\x02"                              // 2: varint
      "\x2a\x0a"                              // 5: message of 10 bytes
      "\x0a\x08"                              //   1: value of 8 bytes
      "\x0a\x01"                              //     1: tag
      "a"
      "\x15\x00\x00\x80\x3f";  //                    2: float
  EXPECT_EQ(event.SerializeAsString(),
            std::string(expected, sizeof(expected) - 1));
}

TEST_F(EventFileTest, FolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(EventFile::Create(Path("none"), 1.0).ok());
}

}  // namespace
}  // namespace tributary
