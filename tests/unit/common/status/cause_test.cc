// SPDX-License-Identifier: Apache-2.0
#include "common/status/cause.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tributary {
namespace {

TEST(CauseTest, AStatusKeepsItsCauseUnderAnotherMessage) {
  const absl::Status full =
      WithCause(absl::ResourceExhaustedError("f: write"), v1::CAUSE_FULL_DISK);
  const absl::Status told = WithMessage(full, "checkpoint: f: write");
  EXPECT_EQ(told.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(told.message(), "checkpoint: f: write");
  EXPECT_EQ(CauseOf(told), v1::CAUSE_FULL_DISK);
  EXPECT_EQ(CauseOf(absl::UnknownError("?")), v1::CAUSE_UNSPECIFIED);
}

TEST(CauseTest, APayloadThatCannotBeReadIsNoCause) {
  absl::Status status = absl::UnknownError("?");
  status.SetPayload("tributary.v1.ErrorDetail", absl::Cord("\xff\xff"));
  EXPECT_EQ(CauseOf(status), v1::CAUSE_UNSPECIFIED);
}

TEST(CauseTest, NamesAreWords) {
  EXPECT_EQ(CauseName(v1::CAUSE_UNSPECIFIED), "");
  EXPECT_EQ(CauseName(v1::CAUSE_FULL_DISK), "full-disk");
  EXPECT_EQ(CauseName(v1::CAUSE_DIVERGENCE), "divergence");
  EXPECT_EQ(CauseName(static_cast<v1::Cause>(1000)), "") << "of a newer peer";
}

TEST(CauseTest, AWaitSaysForWhom) {
  const v1::Wait ranks = WaitForRanks("rank 1, 2", {1, 2}, 51);
  EXPECT_EQ(ranks.cause(), v1::CAUSE_RANKS);
  EXPECT_EQ(std::vector<uint32_t>(ranks.ranks().begin(), ranks.ranks().end()),
            (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(ranks.step(), 51);
  EXPECT_FALSE(ranks.has_server());
  EXPECT_EQ(WaitForServer("an answer", 0).server(), 0u);
  EXPECT_TRUE(WaitForServer("an answer", 0).has_server());
}

}  // namespace
}  // namespace tributary
