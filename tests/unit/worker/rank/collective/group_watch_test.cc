// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/group_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
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

// A mesh whose sends are slow, unless it is aborted.
class SlowMesh final : public Mesh {
 public:
  explicit SlowMesh(std::unique_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}
  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  const char* backend() const override { return mesh_->backend(); }
  std::unique_ptr<Operation> Send(int to, uint64_t tag, const void* data,
                                  size_t bytes) override {
    aborted_.WaitForNotificationWithTimeout(absl::Milliseconds(100));
    return mesh_->Send(to, tag, data, bytes);
  }
  std::unique_ptr<Operation> Receive(int from, uint64_t tag, void* data,
                                     size_t bytes) override {
    return mesh_->Receive(from, tag, data, bytes);
  }
  void Abort(const std::string& why) override {
    mesh_->Abort(why);
    aborted_.Notify();
  }

 private:
  const std::unique_ptr<Mesh> mesh_;
  absl::Notification aborted_;
};

// Rank 1 ends because rank 2 is lost, and has told rank 0 so.
TEST(GroupWatchTest, WhoEndsForALossHasToldTheNextOneOfIt) {
  auto sides = CreateInProcessMesh(3);
  GroupWatch first(std::move(sides[0]), {});
  auto second = std::make_unique<GroupWatch>(
      std::make_unique<SlowMesh>(std::move(sides[1])), std::vector<int>());
  sides[2].reset();
  EXPECT_FALSE(second->AwaitLost(kLong).ok());
  second.reset();
  EXPECT_THAT(first.AwaitLost(kLong), StatusIs(absl::StatusCode::kUnavailable,
                                               "rank 2 is lost, says rank 1"));
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
