// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/transfer_ledger.h"

#include <gtest/gtest.h>

#include <optional>

namespace tributary {
namespace {

class TransferLedgerTest : public ::testing::Test {
 protected:
  // A round of two transfers that begins now and has 120 s.
  TransferLedgerTest() {
    ledger_.Begin(now_, absl::Seconds(120));
    ledger_.Add();
    ledger_.Add();
  }

  std::optional<absl::Duration> After(const absl::Status& status,
                                      int failures = 0) {
    return ledger_.After(status, "push of step 3", failures, /*jitter=*/1,
                         now_);
  }

  absl::Duration now_ = absl::Seconds(1000);
  TransferLedger ledger_;
};

TEST_F(TransferLedgerTest, ARoundIsOverWhenItsLastTransferHasEnded) {
  EXPECT_EQ(After(absl::OkStatus()), std::nullopt);
  EXPECT_FALSE(ledger_.over());
  EXPECT_EQ(After(absl::OkStatus()), std::nullopt);
  EXPECT_TRUE(ledger_.over());
  EXPECT_TRUE(ledger_.status().ok());
}

TEST_F(TransferLedgerTest, DamageIsRepairedByAnotherAttemptAfterAPause) {
  EXPECT_EQ(After(absl::DataLossError("x")), absl::Milliseconds(10));
  EXPECT_EQ(After(absl::DataLossError("x"), 1), absl::Milliseconds(20));
  EXPECT_FALSE(ledger_.stopped());
}

TEST_F(TransferLedgerTest, AServerHoldsAnAttemptNoLongerThanTheRoundLasts) {
  EXPECT_EQ(ledger_.HoldFor(now_), absl::Seconds(2));
  EXPECT_EQ(ledger_.HoldFor(now_ + absl::Seconds(119)), absl::Seconds(1));
}

TEST_F(TransferLedgerTest, TheFirstRefusalEndsTheWholeRound) {
  EXPECT_EQ(After(absl::InvalidArgumentError("no such block")), std::nullopt);
  EXPECT_TRUE(ledger_.stopped());
  // The other transfer was cancelled because of that.
  EXPECT_EQ(After(absl::UnavailableError("cancelled")), std::nullopt);
  EXPECT_TRUE(ledger_.over());
  EXPECT_EQ(ledger_.status(),
            absl::InvalidArgumentError("push of step 3: no such block"));
  ledger_.Begin(now_, absl::Seconds(120));
  EXPECT_FALSE(ledger_.stopped());
}

TEST_F(TransferLedgerTest, AfterTheDeadlineTheReasonAndTheAttemptsAreNamed) {
  now_ += absl::Seconds(120);
  EXPECT_EQ(After(absl::UnavailableError("refused"), 7), std::nullopt);
  EXPECT_EQ(ledger_.status(),
            absl::DeadlineExceededError(
                "push of step 3: refused (gave up after 8 attempts)"));
}

TEST_F(TransferLedgerTest, ACancelEndsThisRoundAndTheNext) {
  ledger_.Cancel("a new plan is in force");
  EXPECT_EQ(After(absl::UnavailableError("reset")), std::nullopt);
  EXPECT_EQ(ledger_.status(), absl::CancelledError("a new plan is in force"));
  ledger_.Begin(now_, absl::Seconds(120));
  EXPECT_TRUE(ledger_.stopped());
}

}  // namespace
}  // namespace tributary
