// SPDX-License-Identifier: Apache-2.0
#include "cli/run/members/watch_members.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

using JudgedLoss = Children::Loss;

TEST(LossOfTest, WhatExitsBeforeTrainingHasFoundAnError) {
  EXPECT_EQ(LossOf({.phase = v1::JOB_PHASE_WAITING}), JudgedLoss::kFatal);
  EXPECT_EQ(LossOf({.phase = v1::JOB_PHASE_WAITING, .killed = true}),
            std::nullopt);
}

// Otherwise a job that fills the memory would do so again while it stops.
TEST(LossOfTest, AJobThatStopsBeforeItsFirstStepReplacesNobody) {
  for (const bool has_place : {false, true}) {
    EXPECT_EQ(LossOf({.phase = v1::JOB_PHASE_STOPPING,
                      .killed = true,
                      .has_place = has_place}),
              JudgedLoss::kFatal);
  }
  EXPECT_EQ(
      LossOf(
          {.phase = v1::JOB_PHASE_STOPPING, .trained = true, .killed = true}),
      std::nullopt)
      << "its last common step needs all ranks";
}

TEST(LossOfTest, APlacesEndIsJudgedByTheCoordinator) {
  for (const auto phase : {v1::JOB_PHASE_RUNNING, v1::JOB_PHASE_DONE}) {
    EXPECT_EQ(LossOf({.phase = phase, .killed = true}), std::nullopt);
  }
}

TEST(LossOfTest, AProgramThatStartsTheRanksIsReplacedUntilTheEnd) {
  EXPECT_EQ(LossOf({.phase = v1::JOB_PHASE_RUNNING, .has_place = false}),
            JudgedLoss::kReplace);
  EXPECT_EQ(LossOf({.phase = v1::JOB_PHASE_DONE, .has_place = false}),
            JudgedLoss::kFatal);
  EXPECT_EQ(LossOf({.phase = v1::JOB_PHASE_FAILED, .has_place = false}),
            JudgedLoss::kFatal);
}

}  // namespace
}  // namespace tributary
