// SPDX-License-Identifier: Apache-2.0
#include "common/wire/blocking_call.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "common/wire/channel.h"
#include "tests/testing/relay/message_relay.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr char kReadClock[] = "/tributary.v1.ParameterService/ReadClock";

// Calls a server that gives every request this answer.
absl::StatusOr<v1::ClockResponse> CallWith(
    const absl::StatusOr<std::string>& answer) {
  v1::ClockRequest request;
  request.set_incarnation(5);
  const testing::MessageRelay server(
      [&](const std::string& method, const std::string& message) {
        EXPECT_EQ(method, kReadClock);
        EXPECT_EQ(message, request.SerializeAsString());
        return answer;
      });
  v1::ClockResponse response;
  grpc::ClientContext context;
  const absl::Status status = BlockingCall(
      DataChannel(server.address()), kReadClock, &context, request, &response);
  if (!status.ok()) return status;
  return response;
}

TEST(BlockingCallTest, TheAnswerIsDecoded) {
  v1::ClockResponse answer;
  answer.set_steps(7);
  const auto response = CallWith(answer.SerializeAsString());
  TRIBUTARY_ASSERT_OK(response);
  EXPECT_EQ(response->steps(), 7);
}

TEST(BlockingCallTest, AnErrorIsReturnedAsItIs) {
  EXPECT_THAT(CallWith(absl::UnavailableError("no plan")),
              StatusIs(absl::StatusCode::kUnavailable, "no plan"));
}

// A caller repeats a call after DataLoss, and gives up after Unimplemented.
TEST(BlockingCallTest, AnAnswerThatCannotBeDecodedWasDamaged) {
  EXPECT_THAT(CallWith("\xff\xff"),
              StatusIs(absl::StatusCode::kDataLoss,
                       "answer of 2 bytes is no tributary.v1.ClockResponse"));
}

}  // namespace
}  // namespace tributary
