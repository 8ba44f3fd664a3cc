// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/group_network.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace tributary {
namespace {

constexpr char kName[] = "NCCL_SOCKET_IFNAME";

std::string InterfaceFor(const std::string& coordinator) {
  KeepGroupsInside(coordinator);
  const char* value = getenv(kName);
  return value == nullptr ? "" : value;
}

class GroupNetworkTest : public ::testing::Test {
 protected:
  GroupNetworkTest() { unsetenv(kName); }
  ~GroupNetworkTest() override { unsetenv(kName); }
};

TEST_F(GroupNetworkTest, RanksOfOneMachineUseItsLoopback) {
  EXPECT_EQ(InterfaceFor("127.0.0.1:7070"), "lo");
}

TEST_F(GroupNetworkTest, RanksOfSeveralMachinesAreLeftAlone) {
  EXPECT_EQ(InterfaceFor("10.0.0.1:7070"), "");
  EXPECT_EQ(InterfaceFor("no address"), "");
}

TEST_F(GroupNetworkTest, WhatTheUserHasChosenStays) {
  setenv(kName, "eth1", 1);
  EXPECT_EQ(InterfaceFor("127.0.0.1:7070"), "eth1");
}

}  // namespace
}  // namespace tributary
