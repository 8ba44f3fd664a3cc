// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/contribution_ledger.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary::testing {
namespace {

TEST(ContributionLedgerTest, EachContributionIsCountedOnceAndInOrder) {
  ContributionLedger ledger({.workers = 2, .steps = 5});
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 1, 5));
  TRIBUTARY_EXPECT_OK(ledger.Repeated(0, 1, 5));
  EXPECT_THAT(ledger.Counted(0, 1, 5),
              StatusIs(absl::StatusCode::kInternal, "counted again"));
  EXPECT_THAT(ledger.Counted(0, 1, 7),
              StatusIs(absl::StatusCode::kInternal, "to step 7 was not"));
  EXPECT_THAT(ledger.Repeated(1, 1, 5),
              StatusIs(absl::StatusCode::kInternal, "never counted"));
}

TEST(ContributionLedgerTest, WithBackupWorkersStepsMayBeLeftOut) {
  ContributionLedger ledger({.workers = 1, .steps = 0, .may_skip = true});
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 1, 3));
  EXPECT_FALSE(ledger.Counted(0, 1, 2).ok());
}

TEST(ContributionLedgerTest, AFencedIncarnationCountsNoMore) {
  ContributionLedger ledger({.workers = 1});
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 1, 0));
  ledger.Fence(0, 4);
  EXPECT_THAT(ledger.Counted(0, 1, 1),
              StatusIs(absl::StatusCode::kInternal,
                       "incarnation 1 counts after 4 has taken its place"));
  EXPECT_FALSE(ledger.Repeated(0, 3, 0).ok());
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 4, 1));
}

TEST(ContributionLedgerTest, WhatWasDroppedCountsOnceMore) {
  ContributionLedger ledger({.workers = 1});
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 1, 0));
  ledger.Fence(0, 4);
  ledger.MayComeAgain(0, 4);
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 4, 0));
  ledger.MayComeAgain(0, 4);
  EXPECT_FALSE(ledger.Counted(0, 4, 0).ok());
  TRIBUTARY_EXPECT_OK(ledger.Counted(0, 4, 1));
}

}  // namespace
}  // namespace tributary::testing
