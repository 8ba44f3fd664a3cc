// SPDX-License-Identifier: Apache-2.0
// The library's programs are built with it, tests are not.
#ifndef TRIBUTARY_FAILPOINTS
#define TRIBUTARY_FAILPOINTS
#endif
#include "common/base/failpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using failpoint::Action;
using failpoint::Entry;
using failpoint::Place;

using FailpointTest = testing::TemporaryFolderTest;

TEST_F(FailpointTest, EntriesNamePlaceHitAndAction) {
  std::vector<Entry> entries;
  ASSERT_TRUE(failpoint::ReadEntries("a:1:kill,b-c:20:delay=30", &entries));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].nth, 1);
  EXPECT_EQ(entries[0].action, Action::kKill);
  EXPECT_EQ(entries[1].id, "b-c:20");
  EXPECT_EQ(entries[1].action, Action::kDelay);
  EXPECT_EQ(entries[1].delay_ms, 30);
}

TEST_F(FailpointTest, WhatIsNoEntryIsRefused) {
  for (const std::string text :
       {"a", "a:1", ":1:kill", "a:0:kill", "a:-1:kill", "a::kill", "a:1:die",
        "a:1:delay", "a:1:delay=", "a:1:delay=x", "a:1:kill,,b:1:kill"}) {
    std::vector<Entry> entries;
    EXPECT_FALSE(failpoint::ReadEntries(text, &entries)) << text;
  }
  EXPECT_DEATH(Place("a", "a:1:die", nullptr), "a:1:die");
}

TEST_F(FailpointTest, FiresAtTheHitThatItsEntryNames) {
  Place place("a", "b:1:error,a:2:error,a:4:error", nullptr);
  std::vector<bool> fired;
  for (int i = 0; i < 5; ++i) fired.push_back(failpoint::Fire(place.Hit()));
  EXPECT_EQ(fired, (std::vector<bool>{false, true, false, true, false}));
}

TEST_F(FailpointTest, WithADirectoryFiresInOneProcessAndLeavesAMark) {
  Place first("a", "a:1:error", folder().c_str());
  Place replacement("a", "a:1:error", folder().c_str());
  EXPECT_TRUE(failpoint::Fire(first.Hit()));
  EXPECT_FALSE(failpoint::Fire(replacement.Hit()));
  EXPECT_EQ(Read("a:1"), std::to_string(getpid()) + " error\n");
}

TEST_F(FailpointTest, KillEndsTheProcessAndSaysSoBefore) {
  EXPECT_EXIT(failpoint::Fire(Place("a", "a:1:kill", nullptr).Hit()),
              ::testing::KilledBySignal(SIGKILL), "failpoint a:1: [0-9]+ kill");
}

TEST_F(FailpointTest, StopStopsTheProcessUntilItIsContinued) {
  const pid_t child = fork();
  if (child == 0) {
    failpoint::Fire(Place("a", "a:1:stop", nullptr).Hit());
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

int Branch() {
  TRIBUTARY_FAILPOINT_OR("branch", return 1);
  return 0;
}

int g_prepared = 0;

void Prepared() { TRIBUTARY_FAILPOINT_AFTER("prepared", ++g_prepared); }

TEST_F(FailpointTest, MacrosReadTheEnvironmentWhenTheyAreFirstReached) {
  setenv("TRIBUTARY_FAILPOINT", "branch:2:error,prepared:3:delay=0", 1);
  EXPECT_EQ(Branch(), 0);
  EXPECT_EQ(Branch(), 1);
  EXPECT_EQ(Branch(), 0);
  for (int i = 0; i < 4; ++i) Prepared();
  EXPECT_EQ(g_prepared, 1);
  TRIBUTARY_FAILPOINT("another");
  unsetenv("TRIBUTARY_FAILPOINT");
}

}  // namespace
}  // namespace tributary
