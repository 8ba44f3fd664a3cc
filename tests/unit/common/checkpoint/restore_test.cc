// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/restore.h"

#include "common/checkpoint/files/shard_file.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using testing::StatusIs;
namespace fs = std::filesystem;

class RestoreTest : public testing::TemporaryFolderTest {
 protected:
  RestoreTest() {
    model_.plan_epoch = 2;
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 3));
    plan_.set_lineage(7);
    plan_.set_start_step(20);
    plan_.set_restore_from(Path("step-000000000020"));
  }
  std::string Shard(int shard) const {
    return plan_.restore_from() + "/" +
           ShardFileName(shard, 3, model_.job_id, model_.plan_epoch);
  }
  // Replaces a shard by another history's file of the same step, which is whole
  // and as long as the replaced one.
  void PutAnotherHistorysFile(int shard) {
    fs::create_directory(Path("other"));
    CheckpointModel other = model_;
    other.offset = 1;
    TRIBUTARY_EXPECT_OK(other.WriteShard(Path("other"), 20, shard, 3));
    fs::copy(Path("other/" + fs::path(Shard(shard)).filename().string()),
             Shard(shard), fs::copy_options::overwrite_existing);
  }
  // Reads a range as a member that restores does, then compares.
  absl::Status Restore(int member, int members) const {
    const auto reader = OpenToRestore(plan_, member, members);
    if (!reader.ok()) return reader.status();
    std::vector<float> values(30'000);
    TRIBUTARY_EXPECT_OK((*reader)->ReadRange(0, 0, 0, absl::MakeSpan(values)));
    return Unreadable((*reader)->CompareChecksums());
  }

  CheckpointModel model_;  // job 7
  v1::Plan plan_;
};

TEST_F(RestoreTest, MembersShareTheFilesThatAreCompared) {
  for (int member : {0, 1}) TRIBUTARY_EXPECT_OK(Restore(member, 2));
  PutAnotherHistorysFile(1);
  TRIBUTARY_EXPECT_OK(Restore(0, 2));
  const absl::Status status = Restore(1, 2);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               Shard(1) + ": byte 0: every page is whole, but "
                                          "the file's checksum is "));
  EXPECT_TRUE(IsUnreadable(status));
  TRIBUTARY_EXPECT_OK(Restore(3, 4));  // there is no fourth file
}

TEST_F(RestoreTest, TheLastFilesAreComparedByTheFirstMembers) {
  PutAnotherHistorysFile(2);
  EXPECT_FALSE(Restore(0, 2).ok());
  TRIBUTARY_EXPECT_OK(Restore(1, 2));
  EXPECT_FALSE(Restore(0, 1).ok());
}

TEST_F(RestoreTest, AFileOfAnotherPlanIsFoundByItsHeader) {
  CheckpointModel earlier = model_;
  earlier.plan_epoch = 1;
  TRIBUTARY_EXPECT_OK(earlier.WriteShard(folder(), 20, 0, 3));
  fs::rename(Path(ShardFileName(0, 3, 7, 1)), Shard(0));
  const absl::Status status = OpenToRestore(plan_, 0, 2).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               "got shard 0 of 3 at step 20 of job 7, plan "
                               "epoch 1"));
  EXPECT_TRUE(IsUnreadable(status));
}

TEST_F(RestoreTest, AnotherLineageOrStepIsRefused) {
  plan_.set_start_step(40);
  EXPECT_THAT(OpenToRestore(plan_, 0, 2),
              StatusIs(absl::StatusCode::kDataLoss,
                       "wants step 40 of lineage 7, got step 20 of lineage 7"));
  plan_.set_start_step(20);
  plan_.set_lineage(8);
  EXPECT_THAT(OpenToRestore(plan_, 0, 2),
              StatusIs(absl::StatusCode::kDataLoss,
                       "wants step 20 of lineage 8, got step 20 of lineage 7"));
  plan_.set_restore_from(Path("gone"));
  EXPECT_TRUE(IsUnreadable(OpenToRestore(plan_, 0, 2).status()));
}

TEST_F(RestoreTest, AKeyKeepsOutTheCheckpointOfSomebodyElse) {
  model_.key = std::string(32, 'k');
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 3));
  EXPECT_TRUE(OpenToRestore(plan_, 0, 2, model_.key).ok());
  EXPECT_EQ(OlderWholeCheckpoint(folder(), 7, 0, 21, model_.key)->step, 20);
  model_.key.clear();
  model_.offset = 1;
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 3));
  EXPECT_TRUE(OpenToRestore(plan_, 0, 2).ok()) << "it is whole";
  const absl::Status status =
      OpenToRestore(plan_, 0, 2, std::string(32, 'k')).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               "the keyed checksum is missing or wrong"));
  EXPECT_TRUE(IsUnreadable(status));
  EXPECT_FALSE(
      OlderWholeCheckpoint(folder(), 7, 0, 21, std::string(32, 'k')).ok());
}

TEST_F(RestoreTest, OnlyTheCheckpointsOwnFaultsAreMarked) {
  EXPECT_TRUE(IsUnreadable(Unreadable(absl::NotFoundError("gone"))));
  EXPECT_FALSE(IsUnreadable(Unreadable(absl::OkStatus())));
  EXPECT_FALSE(
      IsUnreadable(Unreadable(absl::FailedPreconditionError("other job"))));
  EXPECT_FALSE(IsUnreadable(absl::NotFoundError("something else")));
}

TEST_F(RestoreTest, TheOlderOneIsOfTheLineageAndWholeToTheLastByte) {
  for (int64_t step : {5, 10, 15}) {
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), step, 1));
  }
  EXPECT_EQ(OlderWholeCheckpoint(folder(), 7, 0, 20)->step, 15);
  EXPECT_EQ(OlderWholeCheckpoint(folder(), 7, 0, 15)->step, 10);
  EXPECT_THAT(
      OlderWholeCheckpoint(folder(), 8, 0, 20),
      StatusIs(absl::StatusCode::kNotFound,
               folder() + ": holds no intact checkpoint before step 20"));
  const std::string file =
      "step-000000000015/" + ShardFileName(0, 1, 7, model_.plan_epoch);
  std::string bytes = Read(file);
  bytes[bytes.size() / 2] ^= 1;
  Write(file, bytes);
  EXPECT_EQ(OlderWholeCheckpoint(folder(), 7, 0, 20)->step, 10);
  EXPECT_EQ(OlderWholeCheckpoint(folder(), 7, 10, 20)->step, 10);
  EXPECT_FALSE(OlderWholeCheckpoint(folder(), 7, 11, 20).ok());
}

}  // namespace
}  // namespace tributary
