// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/round_options.h"

#include <gtest/gtest.h>

#include "common/plan/plan_codec.h"

namespace tributary {
namespace {

constexpr int64_t kLarge = int64_t{500} << 20;

TEST(NetworkThreadsTest, AServerEachAndAQuarterOfTheProcessors) {
  EXPECT_EQ(NetworkThreads(kLarge, /*servers=*/4, /*processors=*/16), 4);
  EXPECT_EQ(NetworkThreads(kLarge, /*servers=*/3, /*processors=*/16), 3);
  EXPECT_EQ(NetworkThreads(kLarge, /*servers=*/16, /*processors=*/16), 4);
  EXPECT_EQ(NetworkThreads(kLarge, /*servers=*/4, /*processors=*/8), 2);
}

TEST(NetworkThreadsTest, OneOnASmallMachineAndForASmallModel) {
  EXPECT_EQ(NetworkThreads(kLarge, /*servers=*/4, /*processors=*/2), 1);
  EXPECT_EQ(NetworkThreads(kLarge, /*servers=*/4, /*processors=*/0), 1);
  EXPECT_EQ(NetworkThreads(1 << 20, /*servers=*/4, /*processors=*/16), 1);
  EXPECT_EQ(NetworkThreads(32 << 20, /*servers=*/4, /*processors=*/16), 2);
}

// Two servers of six floats each.
ParameterClient::Options TwoServers() {
  ParameterClient::Options options;
  options.plan.set_num_workers(1);
  options.plan.set_bucket_bytes(24);
  options.plan.add_servers("127.0.0.1:1");
  options.plan.add_servers("127.0.0.1:2");
  v1::ParameterSpec& spec = *options.plan.add_parameters();
  spec.set_name("w");
  spec.add_shape(12);
  return options;
}

TransferRound::Options RoundOf(const ParameterClient::Options& options) {
  return RoundOf(options, MakePartitionPlan(options.plan).value(),
                 MeshOf(options.plan));
}

TEST(RoundOfTest, AThreadHasAQueueOfItsOwn) {
  ParameterClient::Options options = TwoServers();
  options.for_tests.thread_from_bytes = 48;
  options.for_tests.network_threads = 2;
  const TransferRound::Options threads = RoundOf(options);
  EXPECT_EQ(threads.driver, TransferRound::Driver::kOwnThread);
  EXPECT_EQ(threads.calls.size(), 2);
}

TEST(RoundOfTest, ARankWithFewBytesHasNoThread) {
  ParameterClient::Options options = TwoServers();
  options.for_tests.thread_from_bytes = 49;
  options.for_tests.network_threads = 2;
  const TransferRound::Options none = RoundOf(options);
  EXPECT_EQ(none.driver, TransferRound::Driver::kCaller);
  EXPECT_EQ(none.calls.size(), 1);
}

}  // namespace
}  // namespace tributary
