// SPDX-License-Identifier: Apache-2.0
#include "common/base/failpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/testing/failpoints/failpoints.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using failpoint::Entry;
using failpoint::Failpoints;

using FailpointTest = testing::TemporaryFolderTest;

TEST_F(FailpointTest, EntriesNamePlaceHitAndAction) {
  std::vector<Entry> entries;
  ASSERT_TRUE(failpoint::ReadEntries("a:1:kill,b-c:20:delay=30", &entries));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].nth, 1);
  EXPECT_EQ(entries[0].action, failpoint::Action::kKill);
  EXPECT_EQ(entries[1].id, "b-c:20");
  EXPECT_EQ(entries[1].action, failpoint::Action::kDelay);
  EXPECT_EQ(entries[1].delay_ms, 30);
}

TEST_F(FailpointTest, WhatIsNoEntryIsRefused) {
  for (const std::string text :
       {"a", "a:1", ":1:kill", "a:0:kill", "a:-1:kill", "a::kill", "a:1:die",
        "a:1:delay", "a:1:delay=", "a:1:delay=x", "a:1:kill,,b:1:kill"}) {
    std::vector<Entry> entries;
    EXPECT_FALSE(failpoint::ReadEntries(text, &entries)) << text;
  }
  EXPECT_DEATH(Failpoints("a:1:die", ""), "a:1:die");
}

// Whether the caller of the place must take its error branch.
bool Fails(Failpoints& failpoints, std::string_view name) {
  const Entry* entry = failpoints.Reach(name);
  return entry != nullptr && failpoint::Act(*entry);
}

TEST_F(FailpointTest, FiresAtTheVisitThatItsEntryNames) {
  Failpoints failpoints("b:1:error,a:2:error,a:4:error", "");
  std::vector<bool> fired;
  for (int i = 0; i < 5; ++i) fired.push_back(Fails(failpoints, "a"));
  EXPECT_EQ(fired, (std::vector<bool>{false, true, false, true, false}));
}

TEST_F(FailpointTest, WithADirectoryFiresInOneProcessAndLeavesAMark) {
  Failpoints first("a:1:error", folder());
  Failpoints replacement("a:1:error", folder());
  EXPECT_TRUE(Fails(first, "a"));
  EXPECT_FALSE(Fails(replacement, "a"));
  EXPECT_EQ(Read("a:1"), std::to_string(getpid()) + " error\n");
}

TEST_F(FailpointTest, KillEndsTheProcessAndSaysSoBefore) {
  Failpoints failpoints("a:1:kill", "");
  EXPECT_EXIT(Fails(failpoints, "a"), ::testing::KilledBySignal(SIGKILL),
              "failpoint a:1: [0-9]+ kill");
}

TEST_F(FailpointTest, StopStopsTheProcessUntilItIsContinued) {
  const pid_t child = fork();
  if (child == 0) {
    Failpoints failpoints("a:1:stop", "");
    Fails(failpoints, "a");
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(FailpointTest, HoldKeepsOneThreadUntilTheMarkIsRemoved) {
  Failpoints failpoints("a:1:hold", folder());
  std::atomic<bool> held{true};
  std::thread visitor([&] {
    Fails(failpoints, "a");
    held = false;
  });
  while (!std::filesystem::exists(Path("a:1"))) std::this_thread::yield();
  Fails(failpoints, "a");  // this thread goes on
  EXPECT_TRUE(held);
  std::filesystem::remove(Path("a:1"));
  visitor.join();
  EXPECT_FALSE(held);
}

int Branch() {
  TRIBUTARY_FAILPOINT_OR("branch", return 1);
  return 0;
}

int g_prepared = 0;

void Prepared() { TRIBUTARY_FAILPOINT_AFTER("prepared", ++g_prepared); }

TEST_F(FailpointTest, PlacesDoNothingUntilFailpointsAreArmed) {
  EXPECT_EQ(failpoint::hooks, nullptr);
  EXPECT_EQ(Branch(), 0);
  failpoint::Arm("branch:2:error,prepared:3:delay=0", "");
  EXPECT_EQ(Branch(), 0);
  EXPECT_EQ(Branch(), 1);
  EXPECT_EQ(Branch(), 0);
  for (int i = 0; i < 4; ++i) Prepared();
  EXPECT_EQ(g_prepared, 1);
  TRIBUTARY_FAILPOINT("another");
  failpoint::Arm("", "");
  EXPECT_EQ(failpoint::hooks, nullptr);
}

}  // namespace
}  // namespace tributary
