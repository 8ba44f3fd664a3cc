// SPDX-License-Identifier: Apache-2.0
// A member that gives its place back.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "common/member/member.h"
#include "tests/unit/common/member/fake_coordinator.h"

namespace tributary {
namespace {

// A member that leaves ends its heartbeats, so its other calls fail. The
// coordinator may not answer them meanwhile, for example because it is new.
TEST(MemberLeaveTest, WhoGivesItsPlaceBackDoesNotFailTheJob) {
  FakeCoordinator coordinator;
  absl::Notification asked, failed;
  std::atomic<int> failures = 0;
  coordinator.OnHeartbeat([&](const v1::HeartbeatRequest& request) {
    if (!request.error().empty()) ++failures;
    if (request.leaving().empty()) return;
    asked.Notify();
    failed.WaitForNotification();
  });
  const auto member = Member::Join(
      {.coordinator = coordinator.address(), .role = v1::ROLE_WORKER});
  ASSERT_TRUE(member.ok()) << member.status();
  std::thread leaving([&] { (*member)->Leave("it got SIGTERM"); });
  asked.WaitForNotification();
  (*member)->Fail(absl::AbortedError("the evaluation names term 1"));
  failed.Notify();
  leaving.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace tributary
