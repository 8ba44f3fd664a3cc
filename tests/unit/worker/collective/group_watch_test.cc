#include "worker/collective/group_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

constexpr absl::Duration kLong = absl::Seconds(20);

std::vector<std::unique_ptr<GroupWatch>> Watches(std::vector<int> ranks) {
  auto sides = CreateInProcessMesh(static_cast<int>(ranks.size()));
  std::vector<std::unique_ptr<GroupWatch>> watches;
  for (auto& side : sides) {
    watches.push_back(std::make_unique<GroupWatch>(std::move(side), ranks));
  }
  return watches;
}

TEST(GroupWatchTest, AllHearWhoIsGone) {
  auto watches = Watches({3, 5, 7, 9});
  for (const auto& watch : watches) TRIBUTARY_EXPECT_OK(watch->lost());
  watches[2].reset();
  EXPECT_THAT(watches[1]->AwaitLost(kLong),
              StatusIs(absl::StatusCode::kUnavailable, "rank 7 is gone"));
  EXPECT_THAT(
      watches[0]->AwaitLost(kLong),
      StatusIs(absl::StatusCode::kUnavailable, "rank 7 is lost, says rank 5"));
  EXPECT_THAT(
      watches[3]->AwaitLost(kLong),
      StatusIs(absl::StatusCode::kUnavailable, "rank 7 is lost, says rank 3"));
}

TEST(GroupWatchTest, ThoseWhoWaitInVainFindWhoDoesNot) {
  auto watches = Watches({3, 5, 7});
  std::vector<int> silent;
  std::thread other(
      [&] { silent = watches[2]->FindSilent(absl::Milliseconds(300)); });
  EXPECT_THAT(watches[0]->FindSilent(absl::Milliseconds(300)), ElementsAre(5));
  other.join();
  EXPECT_THAT(silent, ElementsAre(5));
  EXPECT_THAT(watches[0]->lost(),
              StatusIs(absl::StatusCode::kUnavailable, "rank 5 "));
}

TEST(GroupWatchTest, WhoLeavesWithAllOthersIsNotLost) {
  auto watches = Watches({0, 1});
  bool other_left = false;
  std::thread other([&] {
    other_left = watches[1]->Leave(kLong);
    watches[1].reset();
  });
  EXPECT_TRUE(watches[0]->Leave(kLong));
  other.join();
  EXPECT_TRUE(other_left);
  TRIBUTARY_EXPECT_OK(watches[0]->lost());
}

TEST(GroupWatchTest, WhoLeavesAloneDoesNotLeaveWell) {
  auto watches = Watches({0, 1});
  EXPECT_FALSE(watches[0]->Leave(absl::Milliseconds(20)));
  watches[0].reset();
  EXPECT_THAT(watches[1]->AwaitLost(kLong),
              StatusIs(absl::StatusCode::kUnavailable, "rank 0 is gone"));
}

TEST(GroupWatchTest, OneRankAloneHasNobodyToLose) {
  auto watches = Watches({4});
  EXPECT_TRUE(watches[0]->Leave(kLong));
  TRIBUTARY_EXPECT_OK(watches[0]->lost());
}

}  // namespace
}  // namespace tributary
