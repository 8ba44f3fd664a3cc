// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/memory_links.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

// Connects to a server that cannot be reached through shared memory.
absl::Status ConnectElsewhere(Transport transport, bool needed) {
  MemoryLinks links(transport, needed, SharedArena::Create(64).value(),
                    /*rank=*/0, /*ticket=*/"", /*num_shards=*/1);
  const absl::Status status =
      links.Connect(0, "10.0.0.2:7071", v1::ClockResponse(), {});
  EXPECT_EQ(links.of(0), nullptr);
  return status;
}

TEST(MemoryLinksTest, AJobThatAsksForSharedMemoryDoesNotBeginWithout) {
  EXPECT_THAT(ConnectElsewhere(Transport::kSharedMemory, /*needed=*/true),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                "no shared memory with server 10.0.0.2:7071"));
}

TEST(MemoryLinksTest, OnceItTrainsItGoesOnOverGrpc) {
  TRIBUTARY_EXPECT_OK(
      ConnectElsewhere(Transport::kSharedMemory, /*needed=*/false));
  TRIBUTARY_EXPECT_OK(ConnectElsewhere(Transport::kAuto, /*needed=*/true));
}

TEST(MemoryLinksTest, ItIsNeededWhenTheJobBeginsAndNotAfterALoss) {
  v1::Plan plan;
  plan.set_epoch(1);
  EXPECT_TRUE(NeedsSharedMemory(plan, 1, 7));
  plan.add_incarnations(4);
  plan.add_incarnations(7);
  EXPECT_TRUE(NeedsSharedMemory(plan, 1, 7));
  EXPECT_FALSE(NeedsSharedMemory(plan, 1, 8)) << "a worker was replaced";
  plan.set_epoch(2);
  EXPECT_FALSE(NeedsSharedMemory(plan, 1, 7)) << "a server was replaced";
}

}  // namespace
}  // namespace tributary
