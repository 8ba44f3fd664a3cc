// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_directory.h"

#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/files/folder_name.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using ::testing::ElementsAre;
using testing::StatusIs;
namespace fs = std::filesystem;

class CheckpointDirectoryTest : public testing::TemporaryFolderTest {
 protected:
  void WriteStep(int64_t step, int num_shards = 1) {
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), step, num_shards));
  }
  // A folder that a killed process left behind.
  void WriteHalf(int64_t step) {
    const auto made = OpenCheckpointFolder(folder(), step);
    ASSERT_TRUE(made.ok()) << made.status();
    TRIBUTARY_EXPECT_OK(model_.WriteShard(*made, step, 0, 2));
    Write(CheckpointFolderName(step) + "/shard-001-of-002.ckpt.partial-1-0",
          "half");
  }
  // Newest first; incomplete ones are negative.
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    const auto found = ListCheckpoints(folder());
    EXPECT_TRUE(found.ok()) << found.status();
    for (const CheckpointInfo& info : *found) {
      steps.push_back(info.complete() ? info.step : -info.step);
    }
    return steps;
  }

  CheckpointModel model_;  // job 7
  const CheckpointOwner owner_ = {.lineage = 7, .writer = WriterTag(7, 3)};
};

TEST_F(CheckpointDirectoryTest, NamesSortAsTheirSteps) {
  EXPECT_EQ(CheckpointFolderName(20), "step-000000000020");
  EXPECT_EQ(CheckpointFolderName(1'234'567'890'123), "step-1234567890123");
}

TEST_F(CheckpointDirectoryTest, ListShowsTheNewestFirstAndMarksTheIncomplete) {
  WriteStep(20, 2);
  WriteStep(100, 1);
  WriteHalf(60);
  fs::create_directory(Path("step-000000000007"));
  fs::create_directory(Path("step-7"));
  fs::create_directory(Path("best"));
  Write("step-000000000009x", "");
  EXPECT_THAT(Steps(), ElementsAre(100, -60, 20, -7));

  const auto found = ListCheckpoints(folder());
  EXPECT_EQ((*found)[0].path, Path("step-000000000100"));
  EXPECT_EQ((*found)[0].manifest.step(), 100);
  EXPECT_EQ((*found)[0].bytes,
            static_cast<int64_t>(fs::file_size(
                Path("step-000000000100/shard-000-of-001.ckpt"))));
  EXPECT_THAT((*found)[1].status,
              StatusIs(absl::StatusCode::kNotFound, "manifest.ckpt"));
}

TEST_F(CheckpointDirectoryTest, NoDirectoryIsNotFoundAndAnEmptyOneIsEmpty) {
  EXPECT_THAT(Steps(), ElementsAre());
  EXPECT_THAT(ListCheckpoints(Path("no")),
              StatusIs(absl::StatusCode::kNotFound,
                       Path("no") + ": list: No such file or directory"));
}

TEST_F(CheckpointDirectoryTest, AFileThatIsGoneOrCutMakesItIncomplete) {
  WriteStep(20, 2);
  const std::string shard = Path("step-000000000020/shard-001-of-002.ckpt");
  const auto size = fs::file_size(shard);
  fs::resize_file(shard, size - 1);
  EXPECT_THAT(ListCheckpoints(folder())->at(0).status,
              StatusIs(absl::StatusCode::kDataLoss, shard + ": byte "));
  fs::remove(shard);
  EXPECT_THAT(ListCheckpoints(folder())->at(0).status,
              StatusIs(absl::StatusCode::kNotFound, shard));
}

TEST_F(CheckpointDirectoryTest, AManifestInAnothersFolderDoesNotCount) {
  WriteStep(20);
  fs::rename(Path("step-000000000020"), Path("step-000000000030"));
  EXPECT_THAT(ListCheckpoints(folder())->at(0).status,
              StatusIs(absl::StatusCode::kDataLoss, "wants step 30, got 20"));
  EXPECT_FALSE(IsWhole(VerifyCheckpoint(Path("step-000000000030"))));
  fs::rename(Path("step-000000000030"), Path("best"));
  EXPECT_TRUE(IsWhole(VerifyCheckpoint(Path("best")))) << "any other name";
}

TEST_F(CheckpointDirectoryTest, TheNewestIsTheNewestCompleteOne) {
  EXPECT_THAT(NewestCheckpoint(folder()),
              StatusIs(absl::StatusCode::kNotFound,
                       folder() + ": holds no complete checkpoint"));
  WriteHalf(60);
  EXPECT_THAT(NewestCheckpoint(folder()),
              StatusIs(absl::StatusCode::kNotFound,
                       "step-000000000060/manifest.ckpt: open"));
  WriteStep(20);
  WriteStep(40);
  EXPECT_EQ(NewestCheckpoint(folder())->step, 40);
}

TEST_F(CheckpointDirectoryTest, PruneKeepsTheNewestAndWhatMayBeBeingWritten) {
  for (const int64_t step : {10, 20, 30, 40}) WriteStep(step);
  WriteHalf(5);
  WriteHalf(35);
  WriteHalf(50);
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 2, owner_));
  EXPECT_THAT(Steps(), ElementsAre(-50, 40, 30));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_THAT(Steps(), ElementsAre(-50, 40));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_THAT(Steps(), ElementsAre(-50, 40));
}

TEST_F(CheckpointDirectoryTest, PruneNeverCountsADamagedOneAsKept) {
  WriteStep(10);
  WriteStep(20);
  fs::remove(Path("step-000000000020/shard-000-of-001.ckpt"));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_THAT(Steps(), ElementsAre(-20, 10));
  EXPECT_THAT(PruneCheckpoints(folder(), 0, owner_),
              StatusIs(absl::StatusCode::kInvalidArgument, "got 0"));
  EXPECT_THAT(Steps(), ElementsAre(-20, 10));
}

TEST_F(CheckpointDirectoryTest, PruneLeavesOtherFilesAlone) {
  WriteStep(10);
  WriteStep(20);
  Write("notes.txt", "mine");
  fs::create_directory(Path("step-1"));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_EQ(Read("notes.txt"), "mine");
  EXPECT_TRUE(fs::exists(Path("step-1")));
}

TEST_F(CheckpointDirectoryTest, GoingBackRemovesWhatCameAfter) {
  for (const int64_t step : {10, 20, 30}) WriteStep(step);
  WriteHalf(15);
  WriteHalf(40);
  TRIBUTARY_EXPECT_OK(RemoveCheckpointsAfter(folder(), 20, 7));
  EXPECT_THAT(Steps(), ElementsAre(20, -15, 10));
}

TEST_F(CheckpointDirectoryTest, AnotherLineagesCheckpointsAreNotTouched) {
  for (const int64_t step : {10, 20, 30}) WriteStep(step);
  model_.job_id = 8;
  for (const int64_t step : {5, 15, 25}) WriteStep(step);
  WriteHalf(12);
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_THAT(Steps(), ElementsAre(30, 25, 15, -12, 5));
  TRIBUTARY_EXPECT_OK(RemoveCheckpointsAfter(folder(), 0, /*lineage=*/7));
  EXPECT_THAT(Steps(), ElementsAre(25, 15, -12, 5));
  fs::remove(Path("step-000000000025/manifest.ckpt"));
  TRIBUTARY_EXPECT_OK(RemoveCheckpointsAfter(folder(), 0, /*lineage=*/7));
  EXPECT_THAT(Steps(), ElementsAre(-25, 15, -12, 5)) << "its files say whose";
}

TEST_F(CheckpointDirectoryTest, AResumedJobGoesOnWithTheLineageOfTheFirst) {
  WriteStep(10);
  model_.job_id = 8;
  model_.lineage = 7;
  WriteStep(20);
  EXPECT_EQ(ListCheckpoints(folder())->at(0).lineage, 7u);
  EXPECT_EQ(ListCheckpoints(folder())->at(1).lineage, 7u);
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_THAT(Steps(), ElementsAre(20));
}

// A process that had lost its place writes the same step under an older plan:
// its file must not get under the newer plan's manifest.
TEST_F(CheckpointDirectoryTest, AFileOfAnEarlierPlanStandsBesideTheLaterOnes) {
  model_.plan_epoch = 2;
  WriteStep(20);
  CheckpointModel zombie;
  zombie.plan_epoch = 1;
  zombie.offset = 5;
  TRIBUTARY_EXPECT_OK(
      zombie.WriteShard(Path(CheckpointFolderName(20)), 20, 0, 1));
  EXPECT_TRUE(IsWhole(VerifyCheckpoint(Path(CheckpointFolderName(20)))));
  const auto reader = CheckpointReader::Open(Path(CheckpointFolderName(20)));
  TRIBUTARY_ASSERT_OK(reader);
  float value = 0;
  TRIBUTARY_EXPECT_OK((*reader)->ReadRange(0, 0, 0, absl::MakeSpan(&value, 1)));
  EXPECT_EQ(value, model_.Value(0, 0, 0));
}

TEST_F(CheckpointDirectoryTest, PruneRemovesFilesThatNoManifestNames) {
  model_.plan_epoch = 2;
  WriteStep(20);
  const std::string step = CheckpointFolderName(20);
  Write(step + "/" + ShardFileName(0, 1, 7, 1), "of an earlier plan");
  Write(step + "/" + ShardFileName(0, 1, 7, 3) + ".partial-9-1", "written now");
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner_));
  EXPECT_FALSE(fs::exists(Path(step + "/" + ShardFileName(0, 1, 7, 1))));
  EXPECT_TRUE(fs::exists(
      Path(step + "/" + ShardFileName(0, 1, 7, 3) + ".partial-9-1")));
  EXPECT_TRUE(IsWhole(VerifyCheckpoint(Path(step))));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, {7, ""}));
  EXPECT_FALSE(fs::exists(
      Path(step + "/" + ShardFileName(0, 1, 7, 3) + ".partial-9-1")));
  EXPECT_TRUE(IsWhole(VerifyCheckpoint(Path(step))));
}

TEST_F(CheckpointDirectoryTest, WhatIsHalfWrittenGoesWhenNobodyWrites) {
  WriteStep(10);
  WriteHalf(20);
  WriteStep(30);
  Write("step-000000000030/manifest.ckpt", "damaged");
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 3, {7, ""}));
  EXPECT_THAT(Steps(), ElementsAre(-30, 10)) << "a damaged one is for people";
}

TEST_F(CheckpointDirectoryTest, ARevokedManifestLeavesTheFiles) {
  WriteStep(10);
  TRIBUTARY_EXPECT_OK(RevokeManifest(folder(), 10));
  TRIBUTARY_EXPECT_OK(RevokeManifest(folder(), 11));  // there is none
  EXPECT_THAT(Steps(), ElementsAre(-10));
  EXPECT_TRUE(fs::exists(Path("step-000000000010/shard-000-of-001.ckpt")));
}

TEST_F(CheckpointDirectoryTest, WritingAStepAgainReplacesItAltogether) {
  WriteStep(20, 3);
  WriteStep(20, 2);
  EXPECT_THAT(Steps(), ElementsAre(20));
  TRIBUTARY_EXPECT_OK(CheckpointReader::Open(Path("step-000000000020")));
}

TEST_F(CheckpointDirectoryTest, TheDirectoryIsMadeWithItsParents) {
  const auto made = OpenCheckpointFolder(Path("run/checkpoints"), 0);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*made, Path("run/checkpoints/step-000000000000"));
  EXPECT_THAT(OpenCheckpointFolder(folder(), -1),
              StatusIs(absl::StatusCode::kInvalidArgument, "got -1"));
  Write("file", "");
  EXPECT_THAT(OpenCheckpointFolder(Path("file"), 1),
              StatusIs(absl::StatusCode::kUnavailable, Path("file")));
}

TEST_F(CheckpointDirectoryTest, AManifestIsNotWrittenOverMissingFiles) {
  const auto made = OpenCheckpointFolder(folder(), 20);
  ASSERT_TRUE(made.ok());
  v1::CheckpointManifest manifest = model_.Manifest(20);
  EXPECT_THAT(WriteManifest(folder(), manifest),
              StatusIs(absl::StatusCode::kInvalidArgument, "got 0"));
  *manifest.add_files() = *model_.WriteShard(*made, 20, 0, 1);
  manifest.mutable_files(0)->set_bytes(manifest.files(0).bytes() + 1);
  EXPECT_THAT(WriteManifest(folder(), manifest),
              StatusIs(absl::StatusCode::kDataLoss, "shard-000-of-001.ckpt"));
  fs::remove(*made + "/shard-000-of-001.ckpt");
  EXPECT_THAT(WriteManifest(folder(), manifest),
              StatusIs(absl::StatusCode::kNotFound, "shard-000-of-001.ckpt"));
  EXPECT_THAT(Steps(), ElementsAre(-20));
}

}  // namespace
}  // namespace tributary
