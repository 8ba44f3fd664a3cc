// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/files/shard_file.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

// A shard file in memory: `index`, then `data_bytes` bytes of zeros.
std::string File(const v1::CheckpointShard& index, uint64_t data_bytes) {
  const std::string message = index.SerializeAsString();
  std::string header = "TRIBCKPT";
  for (const uint64_t word :
       {uint64_t{1} << 32 | 2, uint64_t{message.size()}, data_bytes}) {
    header.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return ToPages(header + message + std::string(data_bytes, '\0'));
}

// One block of all of "a" [3] and of two elements of "b" [2, 2], with a state.
v1::CheckpointShard Index() {
  v1::CheckpointShard index;
  index.set_num_shards(1);
  v1::ParameterSpec* a = index.add_parameters();
  a->set_name("a");
  a->add_shape(3);
  v1::ParameterSpec* b = index.add_parameters();
  b->set_name("b");
  b->add_shape(2);
  b->add_shape(2);
  index.add_state_names("momentum_buffer");
  v1::CheckpointBlock* block = index.add_blocks();
  v1::CheckpointSlice* slice = block->add_slices();
  slice->set_parameter(1);
  slice->set_begin(2);
  slice->set_end(4);
  slice = block->add_slices();
  slice->set_end(3);
  return index;
}
constexpr uint64_t kDataBytes = 5 * 2 * sizeof(float);

std::string ErrorOf(const v1::CheckpointShard& index,
                    uint64_t data_bytes = kDataBytes) {
  const absl::Status status =
      ShardFile::Parse("x", File(index, data_bytes)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  const std::string start = "x: byte 32: the index is impossible: ";
  const std::string message(status.message());
  EXPECT_EQ(message.substr(0, start.size()), start);
  return message.substr(std::min(start.size(), message.size()));
}

TEST(ShardFileTest, TheNameSaysWhichOfHowMany) {
  EXPECT_EQ(ShardFileName(1, 3), "shard-001-of-003.ckpt");
  EXPECT_EQ(ShardFileName(1, 3, 123456789, 2),
            "shard-001-of-003-00000000075bcd15-e0002.ckpt");
  EXPECT_EQ(ShardFileName(255, 256), "shard-255-of-256.ckpt");
}

class ShardFileFolderTest : public testing::TemporaryFolderTest {
 protected:
  const std::vector<float> weights_ = {1, 2, 3, 4, 5};
  const std::vector<float> state_ = {-1, -2, -3, -4, -5};
  const std::vector<Slice> slices_ = {{1, 2, 4, 0}, {0, 0, 3, 2}};
  const ShardFileHeader header_ = {{.job_id = 9,
                                    .shard = 1,
                                    .num_shards = 2,
                                    .parameters = {{"a", {3}}, {"b", {2, 2}}},
                                    .state_names = {"momentum_buffer"}},
                                   /*step=*/20,
                                   /*skipped_steps=*/2};
  const BlockImage block_ = {.slices = slices_,
                             .weights = weights_.data(),
                             .state = {state_.data()},
                             .num_elements = 5};
};

TEST_F(ShardFileFolderTest, GivesBackWhatWasWritten) {
  const auto written = WriteShardFile(folder(), header_, {block_});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->name(), "shard-001-of-002.ckpt");
  EXPECT_EQ(written->bytes(), Read(written->name()).size());
  EXPECT_EQ(NumFiles(), 1);

  const auto file = ShardFile::Open(Path(written->name()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->header(), header_);
  ASSERT_EQ((*file)->ranges().size(), 2u);
  const ShardFile::Range& b = (*file)->ranges()[0];
  const ShardFile::Range& a = (*file)->ranges()[1];
  PageBuffer buffer;
  std::vector<float> values(2);
  TRIBUTARY_EXPECT_OK((*file)->Read(b, 0, 2, absl::MakeSpan(values), &buffer));
  EXPECT_THAT(values, ElementsAre(1, 2));
  TRIBUTARY_EXPECT_OK((*file)->Read(a, 1, 1, absl::MakeSpan(values), &buffer));
  EXPECT_THAT(values, ElementsAre(-4, -5));
}

TEST_F(ShardFileFolderTest, ElementsOutsideARangeAreNotRead) {
  const auto written = WriteShardFile(folder(), header_, {block_});
  ASSERT_TRUE(written.ok());
  const auto file = ShardFile::Open(Path(written->name()));
  ASSERT_TRUE(file.ok());
  const ShardFile::Range& b = (*file)->ranges()[0];
  PageBuffer buffer;
  std::vector<float> values(2);
  for (const auto& [tensor, first] :
       std::vector<std::pair<int, int64_t>>{{0, 1}, {0, 3}, {2, 2}, {-1, 2}}) {
    EXPECT_EQ(
        (*file)->Read(b, tensor, first, absl::MakeSpan(values), &buffer).code(),
        absl::StatusCode::kOutOfRange);
  }
}

TEST_F(ShardFileFolderTest, AServerWithoutBlocksWritesAFileToo) {
  const auto written = WriteShardFile(folder(), header_, {});
  ASSERT_TRUE(written.ok()) << written.status();
  const auto file = ShardFile::Open(Path(written->name()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->ranges().empty());
}

TEST_F(ShardFileFolderTest, BlocksThatDoNotFitTheHeaderAreNotWritten) {
  const auto error = [this](const BlockImage& block) {
    const auto written = WriteShardFile(folder(), header_, {block});
    EXPECT_EQ(written.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(written.status().message());
  };
  BlockImage wrong = block_;
  wrong.state.clear();
  EXPECT_EQ(error(wrong), "block 0 of a checkpoint: wants 1 states, got 0");
  wrong = block_;
  wrong.num_elements = 6;
  EXPECT_EQ(error(wrong), "block 0 of a checkpoint: wants 5 elements, got 6");
  const std::vector<Slice> long_slice = {{0, 0, 4, 0}};
  wrong.slices = long_slice;
  EXPECT_EQ(error(wrong),
            "block 0 of a checkpoint: wants elements of 0 to 3, got 0 to 4");
  const std::vector<Slice> unknown = {{2, 0, 4, 0}};
  wrong.slices = unknown;
  EXPECT_EQ(error(wrong),
            "block 0 of a checkpoint: wants a parameter below 2, got 2");
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(ShardFileFolderTest, ImpossibleHeadersAreNotWritten) {
  const auto expect = [this](const ShardFileHeader& header,
                             const std::string& text) {
    EXPECT_THAT(WriteShardFile(folder(), header, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, text));
  };
  ShardFileHeader wrong = header_;
  wrong.shard = 2;
  expect(wrong, "got shard 2 of 2");
  wrong = header_;
  wrong.state_names = {"m", "m"};
  expect(wrong, "got \"m\" twice");
  wrong = header_;
  wrong.parameters[1].name = "a";
  expect(wrong, "two parameters are named a");
  EXPECT_EQ(NumFiles(), 0);
}

TEST(ShardIndexTest, TheIndexOfTheseTestsIsRight) {
  const std::string bytes = File(Index(), kDataBytes);
  TRIBUTARY_EXPECT_OK(ShardFile::Parse("x", bytes));
}

TEST(ShardIndexTest, BytesThatAreNoIndexAreRefused) {
  v1::CheckpointShard index;
  const std::string bytes =
      ToPages(std::string("TRIBCKPT\2\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0", 24) +
              std::string(8, '\0') + "\xff");
  EXPECT_EQ(ShardFile::Parse("x", bytes).status().message(),
            "x: byte 32: wants an index, got something else");
}

TEST(ShardIndexTest, SlicesOutsideTheirParameterAreRefused) {
  v1::CheckpointShard index = Index();
  index.mutable_blocks(0)->mutable_slices(1)->set_end(4);
  EXPECT_EQ(ErrorOf(index), "elements 0 to 4 of parameter \"a\", which has 3");
  index.mutable_blocks(0)->mutable_slices(1)->set_end(-1);
  EXPECT_EQ(ErrorOf(index), "elements 0 to -1 of parameter \"a\", which has 3");
  index.mutable_blocks(0)->mutable_slices(1)->set_begin(INT64_MIN);
  index.mutable_blocks(0)->mutable_slices(1)->set_end(INT64_MAX);
  EXPECT_EQ(ErrorOf(index),
            "elements -9223372036854775808 to 9223372036854775807 of parameter "
            "\"a\", which has 3");
  index.mutable_blocks(0)->mutable_slices(1)->set_parameter(2);
  EXPECT_EQ(ErrorOf(index), "a slice of parameter 2 of 2");
  index.mutable_blocks(0)->mutable_slices(1)->set_parameter(-1);
  EXPECT_EQ(ErrorOf(index), "a slice of parameter -1 of 2");
}

TEST(ShardIndexTest, BlocksMustFillTheDataExactly) {
  v1::CheckpointShard skipping = Index();
  skipping.set_step(7);
  skipping.set_skipped_steps(8);
  EXPECT_EQ(ErrorOf(skipping), "8 skipped steps of 7");
  skipping.set_skipped_steps(-1);
  EXPECT_EQ(ErrorOf(skipping), "-1 skipped steps of 7");
  EXPECT_EQ(ErrorOf(Index(), kDataBytes - 4),
            "blocks that want more than the 36 bytes of data");
  EXPECT_EQ(ErrorOf(Index(), kDataBytes + 4),
            "blocks of 40 bytes, the file holds 44");
  EXPECT_EQ(ErrorOf(Index(), 0),
            "blocks that want more than the 0 bytes of data");
}

// Slices of 2^40 elements, again and again: their sum would exceed 64 bits.
TEST(ShardIndexTest, SizesThatOverflowAreRefused) {
  v1::CheckpointShard index = Index();
  index.mutable_parameters(0)->set_shape(0, (int64_t{1} << 40) - 4);
  v1::CheckpointSlice* slice = index.mutable_blocks(0)->mutable_slices(1);
  slice->set_end((int64_t{1} << 40) - 4);
  for (int i = 0; i < 1000; ++i) *index.add_blocks() = index.blocks(0);
  EXPECT_EQ(ErrorOf(index), "blocks that want more than the 40 bytes of data");
}

TEST(ShardIndexTest, ImpossibleParametersAndStatesAreRefused) {
  v1::CheckpointShard index = Index();
  index.mutable_parameters(0)->set_shape(0, int64_t{1} << 40);
  EXPECT_EQ(ErrorOf(index), "the model has more than 1099511627776 elements");
  index = Index();
  index.clear_parameters();
  EXPECT_EQ(ErrorOf(index), "a plan needs at least one parameter");
  index = Index();
  for (int i = 0; i < 16; ++i) index.add_state_names(absl::StrCat("s", i));
  EXPECT_EQ(ErrorOf(index), "wants at most 16 optimizer states, got 17");
  index = Index();
  index.set_state_names(0, "");
  EXPECT_EQ(ErrorOf(index),
            "wants optimizer states with names of their own, got \"\"");
}

}  // namespace
}  // namespace tributary
