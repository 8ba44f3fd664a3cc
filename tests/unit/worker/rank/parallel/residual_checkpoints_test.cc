// SPDX-License-Identifier: Apache-2.0
// A rank's residual goes into checkpoints and comes back.
#include "worker/rank/parallel/residual_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/restore.h"
#include "common/plan/plan_codec.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

class ResidualCheckpointsTest : public testing::TemporaryFolderTest {
 protected:
  ResidualCheckpointsTest() {
    plan_.set_job_id(9);
    plan_.set_lineage(9);
    plan_.set_epoch(1);
    plan_.set_num_workers(1);
    ToProto({{"a", {3}}, {"b", {2}}}, plan_.mutable_parameters());
  }
  std::unique_ptr<ResidualCheckpoints> Create(
      int64_t every_steps,
      std::unique_ptr<const ResidualFile> restore = nullptr) {
    ResidualCheckpoints::Options options;
    options.start_step = plan_.start_step();
    options.every_steps = every_steps;
    options.directory = folder();
    options.series = ResidualSeriesOf(plan_, /*rank=*/0);
    options.on_written = [this](const Checkpointer::Written& written) {
      absl::MutexLock lock(&mu_);
      written_.push_back(written);
    };
    if (restore != nullptr) {
      options.restore =
          [file = std::shared_ptr<const ResidualFile>(std::move(restore))](
              const auto& residuals) { return file->Read(residuals); };
    }
    return std::make_unique<ResidualCheckpoints>(std::move(options));
  }
  // Waits until `count` files are written.
  std::vector<Checkpointer::Written> Await(size_t count) {
    const auto there = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return written_.size() >= count;
    };
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&there), testing::kSoon));
    return written_;
  }
  // Makes a checkpoint of the file that was written after `step` and begins the
  // plan with it.
  void BeginWith(int64_t step, const v1::CheckpointFile& file) {
    v1::CheckpointManifest manifest;
    manifest.set_job_id(9);
    manifest.set_lineage(9);
    manifest.set_plan_epoch(1);
    manifest.set_step(step);
    *manifest.mutable_parameters() = plan_.parameters();
    manifest.add_workers()->set_steps(step);
    const float values[5] = {};
    const Slice slices[] = {{0, 0, 3, 0}, {1, 0, 2, 3}};
    const BlockImage block{
        .slices = slices, .weights = values, .state = {}, .num_elements = 5};
    const std::string checkpoint = OpenCheckpointFolder(folder(), step).value();
    *manifest.add_files() =
        WriteShardFile(checkpoint,
                       {{.job_id = 9,
                         .lineage = 9,
                         .plan_epoch = 1,
                         .parameters = FromProto(plan_.parameters()),
                         .state_names = {}},
                        step},
                       absl::MakeConstSpan(&block, 1))
            .value();
    *manifest.add_residuals() = file;
    TRIBUTARY_EXPECT_OK(WriteManifest(folder(), manifest));
    plan_.set_start_step(step);
    plan_.set_restore_from(checkpoint);
  }
  absl::StatusOr<std::unique_ptr<const ResidualFile>> OpenToRestore() {
    std::string why;
    return OpenResidualToRestore(plan_, /*rank=*/0, &why);
  }

  v1::Plan plan_;
  absl::Mutex mu_;
  std::vector<Checkpointer::Written> written_ ABSL_GUARDED_BY(mu_);
};

TEST_F(ResidualCheckpointsTest, WhatIsWrittenAtACheckpointComesBack) {
  std::vector<float> a = {1, 2, 3}, b = {4, 5};
  const std::vector<float*> residuals = {a.data(), b.data()};
  auto checkpoints = Create(/*every_steps=*/5);
  TRIBUTARY_EXPECT_OK(checkpoints->Restore(0, residuals));
  EXPECT_THAT(a, ElementsAre(1, 2, 3)) << "there is nothing to restore";
  checkpoints->WriteIfDue(4, residuals);
  checkpoints->WriteIfDue(5, residuals);
  a = {7, 7, 7};  // the next step, while the file is written
  const auto written = Await(1);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].step, 5);
  ASSERT_TRUE(written[0].file.ok()) << written[0].file.status();

  BeginWith(5, *written[0].file);
  auto file = OpenToRestore();
  ASSERT_TRUE(file.ok()) << file.status();
  checkpoints = Create(/*every_steps=*/5, *std::move(file));
  b = {0, 0};
  TRIBUTARY_EXPECT_OK(checkpoints->Restore(5, residuals));
  EXPECT_THAT(a, ElementsAre(1, 2, 3));
  EXPECT_THAT(b, ElementsAre(4, 5));
}

TEST_F(ResidualCheckpointsTest, ARankWithoutResidualWritesAnEmptyFile) {
  const std::vector<float*> residuals = {nullptr, nullptr};
  auto checkpoints = Create(/*every_steps=*/1);
  checkpoints->WriteIfDue(1, residuals);
  const auto written = Await(1);
  ASSERT_TRUE(written[0].file.ok()) << written[0].file.status();
  BeginWith(1, *written[0].file);
  auto file = OpenToRestore();
  ASSERT_TRUE(file.ok()) << file.status();
  checkpoints = Create(/*every_steps=*/1, *std::move(file));
  TRIBUTARY_EXPECT_OK(checkpoints->Restore(1, residuals));
}

TEST_F(ResidualCheckpointsTest, WithoutCheckpointsNothingIsWritten) {
  const std::vector<float*> residuals = {nullptr, nullptr};
  Create(/*every_steps=*/0)->WriteIfDue(5, residuals);
  EXPECT_THAT(*ListCheckpoints(folder()), IsEmpty());
}

TEST_F(ResidualCheckpointsTest, AFileThatDoesNotFitIsUnreadable) {
  std::vector<float> a = {1, 2, 3}, b = {4, 5};
  const std::vector<float*> all = {a.data(), b.data()};
  auto checkpoints = Create(/*every_steps=*/1);
  checkpoints->WriteIfDue(1, std::vector<float*>{a.data(), nullptr});
  BeginWith(1, *Await(1).back().file);
  auto file = OpenToRestore();
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status =
      Create(/*every_steps=*/1, *std::move(file))->Restore(1, all);
  EXPECT_TRUE(IsUnreadable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("lacks parameter \"b\""));
}

// Another process has computed steps of this plan, and its residual is lost.
TEST_F(ResidualCheckpointsTest, AProcessThatJoinsARunningPlanIsRefused) {
  plan_.set_start_step(20);
  std::vector<float> a(3), b(2);
  EXPECT_THAT(
      Create(/*every_steps=*/0)
          ->Restore(23, std::vector<float*>{a.data(), b.data()}),
      StatusIs(absl::StatusCode::kInternal,
               "rank 0 has finished 23 steps, its residual is of step 20"));
}

}  // namespace
}  // namespace tributary
