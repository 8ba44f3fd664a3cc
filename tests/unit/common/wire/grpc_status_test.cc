// SPDX-License-Identifier: Apache-2.0
#include "common/wire/grpc_status.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

TEST(GrpcStatusTest, CodeAndMessageAreTheSameBothWays) {
  const absl::Status status = absl::DataLossError("a bit is wrong");
  EXPECT_EQ(ToAbslStatus(ToGrpcStatus(status)), status);
}

TEST(GrpcStatusTest, WhatProgramsReadComesAlongUnlessItIsTooLarge) {
  v1::ErrorDetail detail;
  detail.set_cause(v1::CAUSE_DIVERGENCE);
  detail.mutable_wait()->add_ranks(7);
  const absl::Status status =
      WithDetail(absl::DeadlineExceededError("step 3 waits"), detail);
  const absl::Status received = ToAbslStatus(ToGrpcStatus(status));
  EXPECT_EQ(received, status);
  EXPECT_EQ(DetailOf(received).wait().ranks(0), 7u);
  detail.mutable_wait()->set_text(std::string(kMaxStatusBytes, 'x'));
  EXPECT_EQ(ToGrpcStatus(WithDetail(status, detail)).error_details(), "");
  EXPECT_EQ(CauseOf(ToAbslStatus({grpc::StatusCode::ABORTED, "", "\xff"})),
            v1::CAUSE_UNSPECIFIED);
}

TEST(GrpcStatusTest, AMessageIsCutToWhatAPeerTakesAsMetadata) {
  const std::string longest(kMaxStatusBytes, 'x');
  EXPECT_EQ(ToGrpcStatus(absl::UnknownError(longest)).error_message(), longest);
  EXPECT_EQ(ToGrpcStatus(absl::UnknownError(longest + "y")).error_message(),
            longest);
  std::string foreign;
  while (foreign.size() < 3000) foreign += "東";
  const std::string cut =
      ToGrpcStatus(absl::UnknownError(foreign)).error_message();
  EXPECT_EQ(cut.size(), kMaxStatusBytes / 3 * 3);
  EXPECT_TRUE(IsUtf8(cut));
}

}  // namespace
}  // namespace tributary
