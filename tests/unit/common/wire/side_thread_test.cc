// SPDX-License-Identifier: Apache-2.0
#include "common/wire/side/side_thread.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/wire/identity/call_guard.h"

namespace tributary {
namespace {

// Two alarms wake the thread: one for GoHome, one for Stop. At the first alarm
// the thread may already see that it shall stop.
TEST(SideThreadTest, EndsWhenItIsToldTwoThingsAtOnce) {
  for (int i = 0; i < 600; ++i) {
    SideThread side({"a.Service"}, CallGuard::Open(), /*reflection=*/false);
    grpc::ServerBuilder builder;
    side.Add(&builder);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    side.Start();
    server->Shutdown();
    side.GoHome();
    // Meets the moment at which the thread wakes.
    const absl::Time until = absl::Now() + absl::Nanoseconds(100) * (i % 600);
    while (absl::Now() < until) {
    }
    side.Stop();
    side.Stop();  // harmless
  }
}

TEST(SideThreadTest, EndsBeforeItHasStarted) {
  SideThread side({"a.Service"}, CallGuard::Open(), /*reflection=*/false);
  grpc::ServerBuilder builder;
  side.Add(&builder);
  EXPECT_NE(builder.BuildAndStart(), nullptr);
  side.GoHome();
  side.Stop();
}

}  // namespace
}  // namespace tributary
