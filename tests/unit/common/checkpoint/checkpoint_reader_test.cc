// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_reader.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using testing::StatusIs;
namespace fs = std::filesystem;

class CheckpointReaderTest : public testing::TemporaryFolderTest {
 protected:
  std::unique_ptr<CheckpointReader> Open() const {
    auto reader = CheckpointReader::Open(checkpoint_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  std::string Shard(int shard, int num_shards) const {
    return checkpoint_ + "/" + ShardFileName(shard, num_shards);
  }

  const CheckpointModel model_ = {};
  const std::string checkpoint_ = Path("step-000000000020");
};

void ExpectHolds(const CheckpointReader& reader, const CheckpointModel& model) {
  for (int tensor = 0; tensor < 3; ++tensor) {
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const int parameter = static_cast<int>(p);
      std::vector<float> values(model.parameters[p].size());
      TRIBUTARY_EXPECT_OK(
          reader.ReadRange(tensor, parameter, 0, absl::MakeSpan(values)));
      EXPECT_EQ(values, model.Tensor(tensor, parameter));
    }
  }
}

TEST_F(CheckpointReaderTest, RangesOfATensorAreReadAcrossFiles) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 3));
  const auto reader = Open();
  std::vector<float> values(25'000);
  TRIBUTARY_EXPECT_OK(reader->ReadRange(/*tensor=*/2, /*parameter=*/0,
                                        /*begin=*/5000,
                                        absl::MakeSpan(values)));
  const std::vector<float> wanted = model_.Tensor(2, 0);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), wanted.begin() + 5000));
  TRIBUTARY_EXPECT_OK(reader->ReadRange(0, 0, 30'000, {}));
}

TEST_F(CheckpointReaderTest, WhatItDoesNotHoldIsOutOfRange) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 1));
  const auto reader = Open();
  std::vector<float> values(10);
  const auto code = [&](int tensor, int parameter, int64_t begin) {
    return reader->ReadRange(tensor, parameter, begin, absl::MakeSpan(values))
        .code();
  };
  EXPECT_EQ(code(0, 0, 29'990), absl::StatusCode::kOk);
  EXPECT_EQ(code(0, 0, 29'991), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(0, 0, -1), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(0, 5, 0), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(0, -1, 0), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(3, 0, 0), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(-1, 0, 0), absl::StatusCode::kOutOfRange);
}

TEST_F(CheckpointReaderTest, PruningDoesNotDisturbAReader) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  const auto reader = Open();
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 40, 2));
  TRIBUTARY_EXPECT_OK(
      PruneCheckpoints(folder(), 1, {.lineage = 7, .writer = ""}));
  EXPECT_FALSE(fs::exists(checkpoint_));
  ExpectHolds(*reader, model_);
}

TEST_F(CheckpointReaderTest, ADeletedFileIsNamed) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  fs::remove(Shard(1, 2));
  EXPECT_THAT(CheckpointReader::Open(checkpoint_),
              StatusIs(absl::StatusCode::kNotFound, Shard(1, 2)));
  fs::remove(checkpoint_ + "/manifest.ckpt");
  EXPECT_THAT(CheckpointReader::Open(checkpoint_),
              StatusIs(absl::StatusCode::kNotFound, "/manifest.ckpt"));
}

TEST_F(CheckpointReaderTest, SwappedFilesAreFound) {
  CheckpointModel even;  // shards 1 and 2 have files of one size
  even.parameters = {{"a", {3 * 16384}}};
  TRIBUTARY_EXPECT_OK(even.Write(folder(), 20, 3));
  ASSERT_EQ(fs::file_size(Shard(1, 3)), fs::file_size(Shard(2, 3)));
  fs::rename(Shard(1, 3), Path("aside"));
  fs::rename(Shard(2, 3), Shard(1, 3));
  fs::rename(Path("aside"), Shard(2, 3));
  EXPECT_THAT(
      CheckpointReader::Open(checkpoint_),
      StatusIs(absl::StatusCode::kDataLoss,
               Shard(1, 3) +
                   ": byte 32: wants shard 1 of 3 at step 20 "
                   "of job 7, plan epoch 0, lineage 0, got shard 2 of 3"));
  const std::vector<FileReport> reports = VerifyCheckpoint(checkpoint_);
  ASSERT_EQ(reports.size(), 4u);
  for (const int swapped : {2, 3}) {
    EXPECT_THAT(reports[swapped].status,
                StatusIs(absl::StatusCode::kDataLoss, "it is another file"));
  }
}

TEST_F(CheckpointReaderTest, AFileOfAnotherStepOrJobIsFound) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 40, 2));
  fs::copy(Path("step-000000000040/shard-001-of-002.ckpt"), Shard(1, 2),
           fs::copy_options::overwrite_existing);
  EXPECT_THAT(CheckpointReader::Open(checkpoint_),
              StatusIs(absl::StatusCode::kDataLoss,
                       "got shard 1 of 2 at step 40 of job 7"));
  CheckpointModel other;
  other.job_id = 8;
  TRIBUTARY_EXPECT_OK(other.WriteShard(checkpoint_, 20, 1, 2));
  EXPECT_THAT(CheckpointReader::Open(checkpoint_),
              StatusIs(absl::StatusCode::kDataLoss, "of job 8"));
}

TEST_F(CheckpointReaderTest, AllFilesAgreeOnTheStepsThatChangedNothing) {
  CheckpointModel model;
  model.skipped_steps = {3, 3};
  TRIBUTARY_EXPECT_OK(model.Write(folder(), 20, 2));
  EXPECT_EQ(Open()->skipped_steps(), 3);
  model.skipped_steps = {3, 4};
  TRIBUTARY_EXPECT_OK(model.Write(folder(), 40, 2));
  EXPECT_THAT(CheckpointReader::Open(Path("step-000000000040")),
              StatusIs(absl::StatusCode::kDataLoss,
                       "shard-001-of-002.ckpt says that 4 steps changed "
                       "nothing, shard-000-of-002.ckpt says 3"));
}

// The file has the right header, but fewer blocks than the original.
TEST_F(CheckpointReaderTest, AFileOfAnotherSizeIsFound) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  const auto other = WriteShardFile(checkpoint_,
                                    {{.job_id = model_.job_id,
                                      .shard = 1,
                                      .num_shards = 2,
                                      .parameters = model_.parameters,
                                      .state_names = model_.state_names},
                                     /*step=*/20},
                                    /*blocks=*/{});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(CheckpointReader::Open(checkpoint_),
              StatusIs(absl::StatusCode::kDataLoss,
                       absl::StrCat(Shard(1, 2), ": byte ", other->bytes(),
                                    ": the file is cut short: it ends here")));
}

// Pages and header are valid, but the values differ: only the checksum in the
// manifest shows it, and only a reader of the whole file notices.
TEST_F(CheckpointReaderTest, VerifyFindsAnotherFileInAFilesPlace) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  CheckpointModel other;
  other.offset = 1;
  TRIBUTARY_EXPECT_OK(other.WriteShard(checkpoint_, 20, 1, 2));
  const std::vector<FileReport> reports = VerifyCheckpoint(checkpoint_);
  ASSERT_EQ(reports.size(), 3u);
  TRIBUTARY_EXPECT_OK(reports[0].status);
  TRIBUTARY_EXPECT_OK(reports[1].status);
  EXPECT_THAT(reports[2].status,
              StatusIs(absl::StatusCode::kDataLoss, "it is another file"));
}

class TilingTest : public CheckpointReaderTest {
 protected:
  // Opens a checkpoint whose one file holds these slices of "a" [100].
  absl::Status Open(const std::vector<Slice>& slices) {
    const ParameterSpecs specs = {{"a", {100}}};
    const std::vector<float> values(1000);
    std::vector<BlockImage> blocks;
    for (const Slice& slice : slices) {
      blocks.push_back({.slices = absl::MakeConstSpan(&slice, 1),
                        .weights = values.data(),
                        .state = {},
                        .num_elements = slice.size()});
    }
    CheckpointModel model;
    model.parameters = specs;
    model.state_names.clear();
    v1::CheckpointManifest manifest = model.Manifest(20);
    *manifest.add_files() =
        WriteShardFile(OpenCheckpointFolder(folder(), 20).value(),
                       {{.job_id = 7, .parameters = specs}, /*step=*/20},
                       blocks)
            .value();
    TRIBUTARY_EXPECT_OK(WriteManifest(folder(), manifest));
    return CheckpointReader::Open(checkpoint_).status();
  }
};

TEST_F(TilingTest, EveryElementMustBeThereOnce) {
  TRIBUTARY_EXPECT_OK(Open({{0, 50, 100}, {0, 0, 50}}));
  EXPECT_THAT(Open({{0, 50, 100}, {0, 0, 49}}),
              StatusIs(absl::StatusCode::kDataLoss,
                       "element 49 of parameter \"a\" stands in none"));
  EXPECT_THAT(Open({{0, 0, 99}}), StatusIs(absl::StatusCode::kDataLoss,
                                           "element 99 of parameter \"a\""));
  EXPECT_THAT(Open({}), StatusIs(absl::StatusCode::kDataLoss,
                                 "element 0 of parameter \"a\""));
  EXPECT_THAT(Open({{0, 49, 100}, {0, 0, 50}}),
              StatusIs(absl::StatusCode::kDataLoss,
                       "element 49 of parameter \"a\" stands twice"));
  EXPECT_THAT(Open({{0, 0, 100}, {0, 0, 100}}),
              StatusIs(absl::StatusCode::kDataLoss,
                       "element 0 of parameter \"a\" stands twice"));
}

}  // namespace
}  // namespace tributary
