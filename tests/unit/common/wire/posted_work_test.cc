// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/completion_queue.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/wire/calls/posted_work.h"

namespace tributary {
namespace {

// Alarms that are set a millisecond apart may go off in the opposite order.
TEST(PostedWorkTest, RunsInOrderAndTheLastOneMayShutDown) {
  constexpr int kFunctions = 300;
  PostedWork posted;
  grpc::CompletionQueue queue;
  std::vector<int> order, wanted;
  std::thread loop([&queue] {
    void* tag = nullptr;
    for (bool ok = false; queue.Next(&tag, &ok);) {
      static_cast<CompletionTag*>(tag)->Proceed(ok);
    }
  });
  for (int i = 0; i < kFunctions; ++i) {
    wanted.push_back(i);
    posted.Post(&queue, [&, i] {
      order.push_back(i);
      if (i == kFunctions - 1) queue.Shutdown();
    });
    const absl::Time until = absl::Now() + absl::Microseconds(10) * (i % 20);
    while (absl::Now() < until) {
    }
  }
  loop.join();
  EXPECT_EQ(order, wanted);
}

}  // namespace
}  // namespace tributary
