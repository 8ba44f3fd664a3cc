#include "common/checkpoint/checkpoint_directory.h"

#include "common/checkpoint/checkpoint_reader.h"
#include "tests/testing/checkpoint_files.h"
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
    const auto made = CreateCheckpointFolder(folder(), step);
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

  const CheckpointModel model_ = {};
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
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 2));
  EXPECT_THAT(Steps(), ElementsAre(-50, 40, 30));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1));
  EXPECT_THAT(Steps(), ElementsAre(-50, 40));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1));
  EXPECT_THAT(Steps(), ElementsAre(-50, 40));
}

TEST_F(CheckpointDirectoryTest, PruneNeverCountsADamagedOneAsKept) {
  WriteStep(10);
  WriteStep(20);
  fs::remove(Path("step-000000000020/shard-000-of-001.ckpt"));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1));
  EXPECT_THAT(Steps(), ElementsAre(-20, 10));
  EXPECT_THAT(PruneCheckpoints(folder(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, "got 0"));
  EXPECT_THAT(Steps(), ElementsAre(-20, 10));
}

TEST_F(CheckpointDirectoryTest, PruneLeavesOtherFilesAlone) {
  WriteStep(10);
  WriteStep(20);
  Write("notes.txt", "mine");
  fs::create_directory(Path("step-1"));
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1));
  EXPECT_EQ(Read("notes.txt"), "mine");
  EXPECT_TRUE(fs::exists(Path("step-1")));
}

TEST_F(CheckpointDirectoryTest, GoingBackRemovesWhatCameAfter) {
  for (const int64_t step : {10, 20, 30}) WriteStep(step);
  WriteHalf(15);
  WriteHalf(40);
  TRIBUTARY_EXPECT_OK(RemoveCheckpointsAfter(folder(), 20));
  EXPECT_THAT(Steps(), ElementsAre(20, -15, 10));
}

TEST_F(CheckpointDirectoryTest, WritingAStepAgainReplacesItAltogether) {
  WriteStep(20, 3);
  const auto made = CreateCheckpointFolder(folder(), 20);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*made, Path("step-000000000020"));
  EXPECT_TRUE(fs::is_empty(*made));
  WriteStep(20, 2);
  EXPECT_THAT(Steps(), ElementsAre(20));
  TRIBUTARY_EXPECT_OK(CheckpointReader::Open(Path("step-000000000020")));
}

TEST_F(CheckpointDirectoryTest, TheDirectoryIsMadeWithItsParents) {
  const auto made = CreateCheckpointFolder(Path("run/checkpoints"), 0);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*made, Path("run/checkpoints/step-000000000000"));
  EXPECT_THAT(CreateCheckpointFolder(folder(), -1),
              StatusIs(absl::StatusCode::kInvalidArgument, "got -1"));
  Write("file", "");
  EXPECT_THAT(CreateCheckpointFolder(Path("file"), 1),
              StatusIs(absl::StatusCode::kUnavailable, Path("file")));
}

TEST_F(CheckpointDirectoryTest, AManifestIsNotWrittenOverMissingFiles) {
  const auto made = CreateCheckpointFolder(folder(), 20);
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
