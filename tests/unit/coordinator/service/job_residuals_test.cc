// SPDX-License-Identifier: Apache-2.0
// Checkpoints of jobs whose ranks write their residuals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/unit/coordinator/service/job_control_fixture.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

class JobResidualsTest : public ::testing::Test {
 protected:
  JobResidualsTest() {
    options_.state = Options();
    options_.state.job.mutable_strategy()
        ->mutable_parameter_server()
        ->set_error_feedback(true);
    options_.clock = &clock_;
    options_.save = [this](const v1::CoordinatorState& state) {
      kept_ = state;
      return absl::OkStatus();
    };
  }
  void Open() {
    control_ = std::make_unique<JobControl>(options_);
    control_->AllowStart("checkpoints");
    server_ = Join(*control_, v1::ROLE_SERVER, "server");
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back(
          Join(*control_, v1::ROLE_WORKER, absl::StrCat("worker-", i)));
      if (i == 0) Declare(*control_, workers_[0]);
    }
  }
  // A heartbeat with the report of this member's file after `step`.
  v1::HeartbeatRequest Written(v1::Role role, const v1::RegisterResponse& place,
                               int64_t step, uint64_t plan_epoch = 1) {
    v1::HeartbeatRequest request = Beat(role, place);
    request.set_plan_epoch(plan_epoch);
    request.set_term(control_->term());
    v1::CheckpointReport* written = request.add_checkpoints();
    written->set_step(step);
    written->set_plan_epoch(plan_epoch);
    written->mutable_file()->set_name(absl::StrCat(
        role == v1::ROLE_SERVER ? "shard-" : "residual-", place.index()));
    return request;
  }
  void ReportRanks(int64_t step, uint64_t plan_epoch = 1) {
    for (const v1::RegisterResponse& worker : workers_) {
      ASSERT_TRUE(
          control_->calls()
              .Heartbeat(Written(v1::ROLE_WORKER, worker, step, plan_epoch))
              .ok());
    }
  }
  void ReportServer(int64_t step, uint64_t plan_epoch = 1) {
    ASSERT_TRUE(
        control_->calls()
            .Heartbeat(Written(v1::ROLE_SERVER, server_, step, plan_epoch))
            .ok());
  }
  static std::vector<std::string> Names(
      const google::protobuf::RepeatedPtrField<v1::CheckpointFile>& files) {
    std::vector<std::string> names;
    for (const v1::CheckpointFile& file : files) names.push_back(file.name());
    return names;
  }

  ManualClock clock_;
  JobControl::Options options_;
  v1::CoordinatorState kept_;
  std::unique_ptr<JobControl> control_;
  v1::RegisterResponse server_;
  std::vector<v1::RegisterResponse> workers_;
};

TEST_F(JobResidualsTest, TheManifestNamesTheFilesOfServersAndRanks) {
  Open();
  ReportServer(5);
  EXPECT_FALSE(control_->output().NextManifest().has_value())
      << "the ranks are missing";
  ReportRanks(5);
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_THAT(Names(pending->manifest.files()), ElementsAre("shard-0"));
  EXPECT_THAT(Names(pending->manifest.residuals()),
              ElementsAre("residual-0", "residual-1", "residual-2"));
}

TEST_F(JobResidualsTest, OtherJobsWaitForNoRank) {
  options_.state.job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_ssp();
  Open();
  ReportRanks(5);
  EXPECT_FALSE(control_->output().NextManifest().has_value());
  ReportServer(5);
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_THAT(Names(pending->manifest.files()), ElementsAre("shard-0"));
  EXPECT_TRUE(pending->manifest.residuals().empty());
}

// The steps of the new plan are another computation of the same bits, by other
// processes.
TEST_F(JobResidualsTest, AFileOfAnEarlierPlanCompletesNoCheckpoint) {
  Open();
  ReportServer(5);
  control_->MemberLost(v1::ROLE_WORKER, 1, 0, "killed");
  workers_[1] = Join(*control_, v1::ROLE_WORKER, "another");
  ASSERT_EQ(control_->calls().GetPlan({}).value().epoch(), 2u);
  ReportRanks(5, /*plan_epoch=*/2);
  EXPECT_FALSE(control_->output().NextManifest().has_value());
  ReportServer(5, /*plan_epoch=*/2);
  EXPECT_TRUE(control_->output().NextManifest().has_value());
}

TEST_F(JobResidualsTest, ALostWorkerTakesTheJobBackToItsCheckpoint) {
  Open();
  ReportServer(5);
  ReportRanks(5);
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_TRUE(
      control_->output().ManifestWritten(*pending, "step-5", absl::OkStatus()));
  control_->MemberLost(v1::ROLE_WORKER, 1, 0, "killed");
  EXPECT_TRUE(absl::IsDeadlineExceeded(control_->calls().GetPlan({}).status()));
  Join(*control_, v1::ROLE_WORKER, "another");
  const absl::StatusOr<v1::Plan> plan = control_->calls().GetPlan({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->epoch(), 2u);
  EXPECT_EQ(plan->start_step(), 5);
  EXPECT_EQ(plan->restore_from(), "step-5");
}

TEST_F(JobResidualsTest, ARankThatCannotReadItsFileTakesTheJobFurtherBack) {
  options_.state.start.step = 6;
  options_.state.start.restore_from = "checkpoints/step-6";
  Open();
  v1::HeartbeatRequest request = Beat(v1::ROLE_WORKER, workers_[2]);
  v1::CheckpointReport* report = request.add_checkpoints();
  report->set_step(6);
  report->set_plan_epoch(1);
  report->set_error("residual: byte 0");
  ASSERT_TRUE(control_->calls().Heartbeat(request).ok());
  const auto lost = control_->output().TakeUnreadable();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->step, 6);
  EXPECT_EQ(lost->why, "rank 2: residual: byte 0");
  control_->output().GoBack(*lost, 4, "checkpoints/step-4");
  EXPECT_EQ(control_->calls().GetPlan({}).value().start_step(), 4);
}

TEST_F(JobResidualsTest, ASuccessorHearsTheFilesOfRanksAgain) {
  Open();
  ReportServer(5);
  ReportRanks(5);
  options_.predecessor.state = &kept_;
  control_ = std::make_unique<JobControl>(options_);
  ReportServer(5);
  ReportRanks(5);
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(pending->manifest.residuals_size(), kWorkers);
}

}  // namespace
}  // namespace tributary
