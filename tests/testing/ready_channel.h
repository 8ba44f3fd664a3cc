// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"

namespace tributary::testing {

// Returns a DataChannel that is connected. Its first attempt to connect has 50
// ms, which a busy machine may miss; a call that does not wait would then fail.
inline std::shared_ptr<grpc::Channel> ReadyChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = nullptr) {
  std::shared_ptr<grpc::Channel> channel = DataChannel(address, credentials);
  EXPECT_TRUE(channel->WaitForConnected(DeadlineAfter(absl::Seconds(30))))
      << address;
  return channel;
}

}  // namespace tributary::testing
