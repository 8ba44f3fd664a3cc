// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/checkpoint_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::ElementsAre;

constexpr CheckpointWriter kServer0{v1::ROLE_SERVER, 0};
constexpr CheckpointWriter kServer1{v1::ROLE_SERVER, 1};
constexpr CheckpointWriter kServer2{v1::ROLE_SERVER, 2};
constexpr CheckpointWriter kRank0{v1::ROLE_WORKER, 0};
constexpr CheckpointWriter kRank1{v1::ROLE_WORKER, 1};

v1::CheckpointReport Failed(int64_t step, const std::string& error) {
  v1::CheckpointReport report;
  report.set_step(step);
  report.set_error(error);
  return report;
}

v1::CheckpointReport Written(int64_t step, const std::string& name,
                             double pause_seconds = 0) {
  v1::CheckpointReport report;
  report.set_step(step);
  report.mutable_file()->set_name(name);
  report.set_pause_seconds(pause_seconds);
  report.add_state_names("momentum");
  return report;
}

TEST(CheckpointLedgerTest, ACheckpointIsCompleteOnceEveryHolderHasWritten) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0,
               {kServer0, kServer2});  // shard 1 holds nothing
  ledger.Add(kServer2, Written(10, "two", 0.5));
  EXPECT_FALSE(ledger.Next().has_value());
  ledger.Add(kServer2, Written(10, "two", 0.5));  // told again
  EXPECT_FALSE(ledger.Next().has_value());
  ledger.Add(kServer0, Written(10, "zero", 0.25));
  const auto next = ledger.Next();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->step, 10);
  EXPECT_EQ(next->files[0].name(), "zero");
  EXPECT_EQ(next->files[1].name(), "two");
  EXPECT_THAT(next->state_names, ElementsAre("momentum"));
  EXPECT_TRUE(ledger.AwaitsAny(10, 10));
  EXPECT_TRUE(ledger.Awaits(10));
  ledger.Settle(10, absl::OkStatus(), /*now_micros=*/77);
  EXPECT_FALSE(ledger.Next().has_value());
  EXPECT_FALSE(ledger.AwaitsAny(10, 10));
  EXPECT_FALSE(ledger.Awaits(10));
  EXPECT_TRUE(ledger.Awaits(13)) << "the job's last step";
  EXPECT_EQ(ledger.newest_step(), 10);
  EXPECT_EQ(ledger.newest_micros(), 77);
  EXPECT_EQ(ledger.pause_seconds(), 0.5);
}

TEST(CheckpointLedgerTest, WhoHoldsNothingDoesNotStandForWhoDoes) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer2});
  ledger.Add(kServer0, Written(10, "zero"));
  ledger.Add(kServer1, Written(10, "one"));
  EXPECT_FALSE(ledger.Next().has_value());
  v1::CheckpointReport failed;
  failed.set_step(10);
  failed.set_error("no space left");
  ledger.Add(kServer1, failed);
  EXPECT_EQ(ledger.failures(), 0u);
  ledger.Add(kServer2, Written(10, "two"));
  EXPECT_EQ(ledger.Next()->files.size(), 2u);
}

TEST(CheckpointLedgerTest, OneServersErrorFailsTheCheckpointForAll) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  ledger.Add(kServer0, Written(10, "zero"));
  v1::CheckpointReport full;
  full.set_step(10);
  full.set_error("no space left");
  ledger.Add(kServer1, full);
  EXPECT_FALSE(ledger.Next().has_value());
  EXPECT_EQ(ledger.failures(), 1u);
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(10));
  EXPECT_THAT(ledger.TakeNotices(),
              ElementsAre("the checkpoint of step 10 failed: server 1: no "
                          "space left"));
  ledger.Add(kServer0, Written(20, "zero"));
  ledger.Add(kServer1, Written(20, "one"));
  EXPECT_EQ(ledger.Next()->step, 20) << "the next one may succeed";
}

TEST(CheckpointLedgerTest, AFailureTakesNoEarlierCheckpointAlong) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kServer0, kServer1});
  for (int64_t step : {10, 20}) ledger.Add(kServer0, Written(step, "zero"));
  ledger.Add(kServer1, Written(10, "one"));
  ledger.Add(kServer0, Failed(30, "no space left"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(30));
  ASSERT_TRUE(ledger.Next().has_value()) << "10 is wholly written";
  EXPECT_EQ(ledger.Next()->step, 10);
  ledger.Settle(10, absl::OkStatus(), 1);
  EXPECT_TRUE(ledger.AwaitsAny(/*last_step=*/30, /*every_steps=*/10))
      << "server 1 still writes 20";
  ledger.Add(kServer1, Written(20, "one"));
  ASSERT_TRUE(ledger.Next().has_value());
  EXPECT_EQ(ledger.Next()->step, 20);
  ledger.Settle(20, absl::OkStatus(), 1);
  EXPECT_FALSE(ledger.AwaitsAny(30, 10));
  EXPECT_EQ(ledger.newest_step(), 20);
  EXPECT_EQ(ledger.failures(), 1u);
}

TEST(CheckpointLedgerTest, WhoReportsALaterStepHasGivenUpTheEarlier) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kServer0, kServer1});
  ledger.Add(kServer0, Written(10, "zero"));
  ledger.Add(kServer1, Written(20, "one"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(10));
  EXPECT_THAT(ledger.TakeNotices(),
              ElementsAre("the checkpoint of step 10 failed: server 1 has "
                          "written that of step 20 without it"));
  ledger.Add(kServer1, Written(30, "one"));
  ledger.Add(kServer0, Written(30, "zero"));
  EXPECT_EQ(ledger.Next()->step, 30) << "20, too, will never be whole";
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(20));
  ledger.Settle(30, absl::OkStatus(), 1);
  EXPECT_FALSE(ledger.AwaitsAny(30, 10));
}

TEST(CheckpointLedgerTest, AFileThatComesAfterALaterReportIsRemovedAtOnce) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kServer0, kServer1});
  ledger.Add(kServer1, Failed(20, "given up"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(20));
  ledger.Add(kServer0, Written(10, "zero"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(10));
  EXPECT_FALSE(ledger.Next().has_value());
}

TEST(CheckpointLedgerTest, ARepeatedReportOfAWholeCheckpointChangesNothing) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kServer0, kServer1});
  ledger.Add(kServer0, Written(10, "zero"));
  ledger.Add(kServer1, Written(10, "one"));
  ledger.Settle(10, absl::OkStatus(), 1);
  ledger.Add(kServer0, Written(10, "zero"));
  ledger.Add(kServer0, Failed(10, "as it came before"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre());
  EXPECT_FALSE(ledger.Next().has_value());
  EXPECT_EQ(ledger.failures(), 0u);
}

TEST(CheckpointLedgerTest, AwaitsEveryDueStepThatNobodyHasDecided) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/20, {kServer0, kServer1});
  EXPECT_FALSE(ledger.AwaitsAny(20, 10));
  EXPECT_TRUE(ledger.AwaitsAny(30, 10)) << "nobody has reported it yet";
  ledger.Add(kServer0, Failed(40, "given up"));
  ledger.TakeFailed();
  EXPECT_FALSE(ledger.AwaitsAny(40, 10)) << "server 0 reports in order";
}

TEST(CheckpointLedgerTest, AFileOfACheckpointThatHasFailedIsToBeRemovedToo) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  v1::CheckpointReport full;
  full.set_step(10);
  full.set_error("no space left");
  ledger.Add(kServer1, full);
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(10));
  ledger.Add(kServer0, Written(10, "zero"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(10));
  EXPECT_EQ(ledger.failures(), 1u);
}

TEST(CheckpointLedgerTest, AManifestThatCannotBeWrittenIsAFailureToo) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0});
  ledger.Add(kServer0, Written(10, "zero"));
  ledger.Settle(10, absl::ResourceExhaustedError("disk full"), 1);
  EXPECT_EQ(ledger.newest_step(), 0);
  EXPECT_EQ(ledger.failures(), 1u);
}

TEST(CheckpointLedgerTest, ANewPlanForgetsWhatWasNotComplete) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  ledger.Add(kServer0, Written(30, "of the plan before"));
  ledger.Add(kServer1, Failed(40, "of the plan before"));
  ledger.Begin(20, {kServer0, kServer1});
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre())
      << "the new plan may be writing 40 already";
  ledger.Add(kServer0, Written(20, "before the start"));
  EXPECT_FALSE(ledger.Next().has_value());
  ledger.Add(kServer1, Written(30, "one"));
  EXPECT_FALSE(ledger.Next().has_value());
  ledger.Add(kServer0, Written(30, "zero"));
  EXPECT_EQ(ledger.Next()->files[0].name(), "zero");
}

TEST(CheckpointLedgerTest, CheckpointsThatWaitAreBounded) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  for (int64_t step = 1; step <= 16; ++step)
    ledger.Add(kServer0, Written(step, "f"));
  EXPECT_EQ(ledger.failures(), 0u);
  ledger.Add(kServer0, Written(17, "f"));
  EXPECT_THAT(ledger.TakeNotices(),
              ElementsAre("the checkpoint of step 1 failed: only 1 of 2 "
                          "servers have written it, and 16 other checkpoints "
                          "wait"));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(1));
  for (int64_t step = 2; step <= 17; ++step)
    ledger.Add(kServer1, Written(step, "g"));
  EXPECT_EQ(ledger.Next()->step, 2);
}

TEST(CheckpointLedgerTest, AReportThatSaysTooMuchFailsTheCheckpoint) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0});
  ledger.Add(kServer0, Written(1, std::string(5000, 'x')));
  EXPECT_FALSE(ledger.Next().has_value());
  v1::CheckpointReport states = Written(2, "f");
  for (int i = 0; i < 16; ++i) states.add_state_names("s");
  ledger.Add(kServer0, states);
  EXPECT_FALSE(ledger.Next().has_value());
  EXPECT_EQ(ledger.failures(), 2u);
}

// A rank's residual has no optimizer states.
v1::CheckpointReport Residual(int64_t step, const std::string& name) {
  v1::CheckpointReport report = Written(step, name);
  report.clear_state_names();
  return report;
}

TEST(CheckpointLedgerTest, ItIsCompleteOnceServersAndRanksHaveWritten) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kServer0, kServer1, kRank0, kRank1});
  ledger.Add(kRank1, Residual(10, "of rank 1"));
  ledger.Add(kServer0, Written(10, "of server 0"));
  ledger.Add(kServer1, Written(10, "of server 1"));
  EXPECT_FALSE(ledger.Next().has_value()) << "server 0 is not rank 0";
  EXPECT_TRUE(ledger.AwaitsAny(10, 10));
  EXPECT_TRUE(ledger.Awaits(10));
  ledger.Add(kRank0, Residual(10, "of rank 0"));
  const auto next = ledger.Next();
  ASSERT_TRUE(next.has_value());
  ASSERT_EQ(next->files.size(), 2u);
  EXPECT_EQ(next->files[0].name(), "of server 0");
  EXPECT_EQ(next->files[1].name(), "of server 1");
  ASSERT_EQ(next->residuals.size(), 2u);
  EXPECT_EQ(next->residuals[0].name(), "of rank 0");
  EXPECT_EQ(next->residuals[1].name(), "of rank 1");
  EXPECT_THAT(next->state_names, ElementsAre("momentum"));
}

TEST(CheckpointLedgerTest, AFailureNamesTheServerOrTheRank) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kServer0, kRank0, kRank1});
  ledger.Add(kRank1, Failed(10, "no space left"));
  ledger.Add(kServer0, Written(20, "of server 0"));
  ledger.Add(kRank0, Residual(30, "of rank 0"));
  EXPECT_THAT(
      ledger.TakeNotices(),
      ElementsAre("the checkpoint of step 10 failed: rank 1: no space "
                  "left",
                  "the checkpoint of step 20 failed: rank 0 has written "
                  "that of step 30 without it"));
}

TEST(CheckpointLedgerTest, RanksAloneWriteTheFilesOfAJobWithoutServers) {
  CheckpointLedger ledger;
  ledger.Begin(/*start_step=*/0, {kRank0, kRank1});
  ledger.Add(kServer0, Written(10, "of a server"));
  ledger.Add(kRank0, Written(10, "of rank 0"));
  EXPECT_FALSE(ledger.Next().has_value());
  ledger.Add(kRank1, Written(10, "of rank 1"));
  ASSERT_TRUE(ledger.Next().has_value());
  EXPECT_EQ(ledger.Next()->files.size(), 2u);
  EXPECT_TRUE(ledger.Next()->residuals.empty());
}

TEST(CheckpointLedgerTest, TheErrorIsThatOfTheNewestCheckpoint) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0});
  EXPECT_EQ(ledger.error(), "");
  ledger.Add(kServer0, Failed(10, "no room"));
  EXPECT_EQ(ledger.error(), "server 0: no room");
  ledger.Add(kServer0, Written(20, "zero"));
  EXPECT_EQ(ledger.error(), "server 0: no room") << "it has no manifest yet";
  ledger.Add(kServer0, Failed(30, "none either"));
  ledger.Settle(20, absl::OkStatus(), 1);
  EXPECT_EQ(ledger.error(), "server 0: none either") << "of a later step";
  ledger.Add(kServer0, Written(40, "zero"));
  ledger.Settle(40, absl::OkStatus(), 2);
  EXPECT_EQ(ledger.error(), "");
  // All go back to step 40, so that step 45 comes after a failed step 50.
  ledger.Add(kServer0, Failed(50, "no room"));
  ledger.Begin(40, {kServer0});
  ledger.Add(kServer0, Written(45, "zero"));
  ledger.Settle(45, absl::OkStatus(), 3);
  EXPECT_EQ(ledger.error(), "");
}

TEST(CheckpointLedgerTest, WhatAnEarlierCoordinatorHeardIsPassed) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  ledger.Add(kServer0, Written(10, "zero"));
  ledger.Pass(kServer2, 20);  // writes none
  EXPECT_TRUE(ledger.Awaits(10));
  ledger.Pass(kServer1, 20);
  EXPECT_FALSE(ledger.Awaits(10));
  EXPECT_FALSE(ledger.Awaits(20));
  EXPECT_THAT(ledger.TakeFailed(), ElementsAre(10));
}

TEST(CheckpointLedgerTest, ThatOfTheBestWeightsIsNotTheOneThatFails) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  ledger.SetBest(1);
  const auto last = static_cast<int64_t>(CheckpointLedger::kMaxOpen) + 2;
  for (int64_t step = 1; step <= last; ++step) {
    ledger.Add(kServer0, Written(step, "a"));
  }
  EXPECT_EQ(ledger.failures(), 2u);
  ledger.Add(kServer1, Written(1, "b"));
  ASSERT_TRUE(ledger.Next().has_value());
  EXPECT_EQ(ledger.Next()->step, 1);
}

// Their manifests are written one by one, the oldest first.
TEST(CheckpointLedgerTest, WholeOnesThatWaitForTheirManifestsAreBoundedToo) {
  CheckpointLedger ledger;
  ledger.Begin(0, {kServer0, kServer1});
  const auto last = static_cast<int64_t>(CheckpointLedger::kMaxOpen) + 1;
  for (int64_t step = 1; step <= last; ++step) {
    ledger.Add(kServer0, Written(step, "a"));
    ledger.Add(kServer1, Written(step, "b"));
  }
  EXPECT_THAT(ledger.TakeNotices(),
              ElementsAre("the checkpoint of step 2 failed: its manifest is "
                          "not written yet, and 16 other checkpoints wait"));
  ASSERT_TRUE(ledger.Next().has_value());
  EXPECT_EQ(ledger.Next()->step, 1);
  ledger.Add(kServer0, Written(last + 1, "a"));
  EXPECT_THAT(ledger.TakeNotices(),
              ElementsAre(::testing::HasSubstr("the checkpoint of step 3 ")))
      << "the newest may be the job's last";
}

}  // namespace
}  // namespace tributary
