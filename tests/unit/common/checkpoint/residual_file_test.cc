// SPDX-License-Identifier: Apache-2.0
// The residuals of ranks in a checkpoint: whole, damaged and missing.
#include "common/checkpoint/files/residual_file.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/restore.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using testing::StatusIs;
namespace fs = std::filesystem;

class ResidualFileTest : public testing::TemporaryFolderTest {
 protected:
  ResidualFileTest() {
    model_.plan_epoch = 2;
    model_.residuals = true;
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 3));
    plan_.set_lineage(7);
    plan_.set_start_step(20);
    plan_.set_num_workers(2);
    plan_.set_restore_from(checkpoint_);
    ToProto(model_.parameters, plan_.mutable_parameters());
  }
  static std::string NameOf(int rank) {
    return FileNameOf({.kind = PagedFileKind::kResidual,
                       .job_id = 7,
                       .plan_epoch = 2,
                       .shard = rank,
                       .num_shards = 2});
  }
  std::string PathOf(int rank) const {
    return checkpoint_ + "/" + NameOf(rank);
  }
  // Opens and reads as a rank does. `has`: the parameters whose gradients it
  // pushes.
  absl::StatusOr<std::vector<std::vector<float>>> Restore(
      int rank, const std::vector<bool>& has) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<const ResidualFile> file,
                               OpenResidualToRestore(plan_, rank, &why_));
    if (file == nullptr) return std::vector<std::vector<float>>();
    std::vector<std::vector<float>> arrays;
    std::vector<float*> residuals;
    for (size_t p = 0; p < has.size(); ++p) {
      arrays.emplace_back(has[p] ? model_.parameters[p].size() : 0);
    }
    for (size_t p = 0; p < has.size(); ++p) {
      residuals.push_back(has[p] ? arrays[p].data() : nullptr);
    }
    TRIBUTARY_RETURN_IF_ERROR(file->Read(residuals));
    return arrays;
  }
  void FlipABitOf(const std::string& path) {
    const std::string name = fs::relative(path, folder()).string();
    std::string bytes = Read(name);
    bytes[bytes.size() / 2] ^= 1;
    Write(name, bytes);
  }

  const std::vector<bool> all_ = {true, true, true, true, true};
  const std::vector<bool> all_but_last_ = {true, true, true, true, false};
  const std::string checkpoint_ = Path("step-000000000020");
  CheckpointModel model_;
  v1::Plan plan_;
  std::string why_;
};

TEST_F(ResidualFileTest, TheNameTellsRankAndRanks) {
  EXPECT_EQ(NameOf(1), "residual-001-of-002-0000000000000007-e0002.ckpt");
}

TEST_F(ResidualFileTest, EachRankReadsItsOwn) {
  const auto first = Restore(0, all_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, model_.Residual(0));
  const auto second = Restore(1, all_but_last_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, model_.Residual(1));
  EXPECT_EQ(why_, "");
}

TEST_F(ResidualFileTest, ItHoldsWhatTheRankPushesAndNothingElse) {
  EXPECT_THAT(Restore(0, all_but_last_),
              StatusIs(absl::StatusCode::kDataLoss,
                       PathOf(0) + ": byte 32: holds parameter \"4.scale\", of "
                                   "which the rank pushes no gradient"));
  EXPECT_THAT(Restore(1, all_),
              StatusIs(absl::StatusCode::kDataLoss,
                       PathOf(1) + ": byte 32: lacks parameter \"4.scale\", of "
                                   "which the rank pushes the gradient"));
  EXPECT_THAT(Restore(0, {true}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           "holds a residual of 5 parameters"));
}

TEST_F(ResidualFileTest, OnlyTheRanksOfTheSameMeshReadThem) {
  plan_.set_num_workers(3);
  EXPECT_TRUE(Restore(0, all_).ok());
  EXPECT_EQ(why_, "the checkpoint has those of 2 ranks, the job has 3");
  plan_.set_num_workers(2);
  plan_.mutable_parameters(0)->set_stage(1);
  EXPECT_TRUE(Restore(0, all_).ok());
  EXPECT_EQ(why_, "the checkpoint has those of another mesh of ranks");
}

TEST_F(ResidualFileTest, ACheckpointWithoutThemIsWholeAndSaysSo) {
  model_.residuals = false;
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 3));
  EXPECT_TRUE(Restore(0, all_).ok());
  EXPECT_EQ(why_, "the checkpoint has none");
  EXPECT_TRUE(IsWhole(VerifyCheckpoint(checkpoint_)));
}

TEST_F(ResidualFileTest, AnotherLineageOrStepIsRefused) {
  plan_.set_start_step(40);
  EXPECT_TRUE(IsUnreadable(Restore(0, all_).status()));
  plan_.set_start_step(20);
  plan_.set_lineage(8);
  EXPECT_TRUE(IsUnreadable(Restore(0, all_).status()));
}

TEST_F(ResidualFileTest, ADamagedOneMakesTheCheckpointUnreadable) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 10, 1));
  FlipABitOf(PathOf(1));
  TRIBUTARY_EXPECT_OK(Restore(0, all_).status());
  const auto file = OpenResidualToRestore(plan_, 1, &why_);
  ASSERT_TRUE(file.ok()) << "its index is intact: " << file.status();
  EXPECT_THAT(Restore(1, all_but_last_),
              StatusIs(absl::StatusCode::kDataLoss, PathOf(1) + ": byte "));
  const std::vector<FileReport> reports = VerifyCheckpoint(checkpoint_);
  ASSERT_EQ(reports.size(), 6u);  // the manifest, 3 shards, 2 residuals
  EXPECT_FALSE(reports[5].status.ok());
  EXPECT_EQ(reports[5].path, PathOf(1));
  EXPECT_EQ(OlderWholeCheckpoint(folder(), 7, 0, 30)->step, 10);
}

TEST_F(ResidualFileTest, AMissingOneMakesTheCheckpointIncomplete) {
  fs::remove(PathOf(0));
  EXPECT_TRUE(IsUnreadable(Restore(0, all_).status()));
  EXPECT_THAT(ReadCheckpointInfo(checkpoint_).status,
              StatusIs(absl::StatusCode::kNotFound, PathOf(0)));
}

// Pages and header are valid, but the values differ.
TEST_F(ResidualFileTest, AnotherHistorysFileIsFoundByItsChecksum) {
  CheckpointModel other = model_;
  other.offset = 1;
  TRIBUTARY_EXPECT_OK(other.WriteResidual(checkpoint_, 20, 0));
  EXPECT_THAT(Restore(0, all_),
              StatusIs(absl::StatusCode::kDataLoss, "the file's checksum is "));
  EXPECT_FALSE(IsWhole(VerifyCheckpoint(checkpoint_)));
}

TEST_F(ResidualFileTest, AFileOfAnotherStepIsFoundByItsHeader) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 40, 3));
  fs::copy(Path("step-000000000040/" + NameOf(0)), PathOf(0),
           fs::copy_options::overwrite_existing);
  EXPECT_THAT(Restore(0, all_),
              StatusIs(absl::StatusCode::kDataLoss,
                       "wants residual 0 of 2 at step 20 of job 7, plan epoch "
                       "2, lineage 0, got residual 0 of 2 at step 40"));
  EXPECT_FALSE(IsWhole(VerifyCheckpoint(checkpoint_)));
}

TEST_F(ResidualFileTest, AShardIsNoResidual) {
  const auto shard =
      ShardFile::Open(checkpoint_ + "/" + ShardFileName(0, 3, 7, 2),
                      Comparing::kNothing, PagedFileKind::kResidual);
  EXPECT_THAT(shard,
              StatusIs(absl::StatusCode::kDataLoss, "wants kind 3, got 2"));
}

TEST_F(ResidualFileTest, EveryParameterIsWholeAndThereOnce) {
  const std::vector<float> values(300);
  const ShardFileSeries series{.kind = PagedFileKind::kResidual,
                               .job_id = 7,
                               .plan_epoch = 2,
                               .shard = 0,
                               .num_shards = 2,
                               .parameters = model_.parameters,
                               .state_names = {}};
  // Opens a file with `times` times the elements 0 to `end` of parameter 1.
  const auto open = [&](int64_t end, size_t times) {
    const Slice slice{.parameter = 1, .end = end};
    const std::vector<BlockImage> blocks(
        times, {.slices = absl::MakeConstSpan(&slice, 1),
                .weights = values.data(),
                .state = {},
                .num_elements = end});
    v1::CheckpointManifest manifest = model_.Manifest(20);
    *manifest.add_residuals() =
        WriteShardFile(checkpoint_, {series, /*step=*/20}, blocks).value();
    manifest.add_residuals();
    return ResidualFile::Open(checkpoint_, manifest, 0).status();
  };
  TRIBUTARY_EXPECT_OK(open(300, 1));
  EXPECT_THAT(open(150, 1), StatusIs(absl::StatusCode::kDataLoss,
                                     "wants the whole parameter \"0.bias\", "
                                     "got elements 0 to 150"));
  EXPECT_THAT(open(300, 2),
              StatusIs(absl::StatusCode::kDataLoss,
                       "parameter \"0.bias\" stands in it twice"));
}

TEST_F(ResidualFileTest, PruningKeepsThemAndRemovesStrays) {
  const CheckpointOwner owner{.lineage = 7, .writer = WriterTag(7, 3)};
  const std::string stray = "step-000000000020/residual-000-of-002-of-another";
  Write(stray, "left behind");
  TRIBUTARY_EXPECT_OK(PruneCheckpoints(folder(), 1, owner));
  EXPECT_FALSE(fs::exists(Path(stray)));
  EXPECT_TRUE(IsWhole(VerifyCheckpoint(checkpoint_)));
}

TEST_F(ResidualFileTest, ADirectoryOfResidualsAloneTellsItsLineage) {
  CheckpointModel other;
  other.job_id = 8;
  other.plan_epoch = 1;
  fs::create_directory(Path("step-000000000030"));
  TRIBUTARY_EXPECT_OK(other.WriteResidual(Path("step-000000000030"), 30, 0));
  EXPECT_EQ(ReadCheckpointInfo(Path("step-000000000030")).lineage, 8u);
}

TEST_F(ResidualFileTest, AManifestNamesThoseOfNoRankOrOfAll) {
  v1::CheckpointManifest manifest = *ReadManifest(checkpoint_);
  TRIBUTARY_EXPECT_OK(CheckManifest(manifest));
  const auto expect = [](const v1::CheckpointManifest& wrong,
                         const std::string& text) {
    EXPECT_THAT(CheckManifest(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, text));
  };
  v1::CheckpointManifest wrong = manifest;
  wrong.mutable_residuals()->RemoveLast();
  expect(wrong, "wants the residuals of no or all 2 ranks, got 1");
  wrong = manifest;
  wrong.mutable_residuals()->SwapElements(0, 1);
  expect(wrong, absl::StrCat("wants file ", NameOf(0), ", got \"", NameOf(1)));
}

}  // namespace
}  // namespace tributary
