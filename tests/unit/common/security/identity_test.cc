// SPDX-License-Identifier: Apache-2.0
#include "common/security/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST(PeerIdentityTest, IsAUriWithJobAndRole) {
  EXPECT_EQ((PeerIdentity{"digits", PeerRole::kWorker}).Uri(),
            "spiffe://tributary/digits/worker");
  EXPECT_EQ((PeerIdentity{"", PeerRole::kCoordinator}).Uri(),
            "spiffe://tributary/coordinator");
}

TEST(PeerIdentityTest, EveryUriIsReadAgain) {
  for (const char* job : {"", "digits", "a-b_c.2", "worker"}) {
    for (PeerRole role : AllPeerRoles()) {
      const PeerIdentity identity{job, role};
      const auto read = ParsePeerIdentity(identity.Uri());
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, identity);
    }
  }
}

TEST(PeerIdentityTest, WhatIsNoIdentityIsRefused) {
  for (const char* uri :
       {"", "worker", "spiffe://tributary", "spiffe://tributary/",
        "spiffe://tributary/boss", "spiffe://tributary//worker",
        "spiffe://tributary/a/b/worker", "spiffe://tributary/digits/worker/",
        "spiffe://tributary/digits/Worker", "spiffe://other/worker",
        "https://tributary/worker", "spiffe://tributary/a%2fb/worker",
        "spiffe://tributary/worker\n"}) {
    const auto read = ParsePeerIdentity(uri);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << uri;
  }
  EXPECT_FALSE(
      ParsePeerIdentity(std::string("spiffe://tributary/worker\0x", 27)).ok());
}

TEST(PeerIdentityTest, AJobThatWouldChangeTheUriIsRefused) {
  EXPECT_TRUE(CheckJobInIdentity("fashion-mnist_2.1").ok());
  EXPECT_TRUE(CheckJobInIdentity(std::string(128, 'a')).ok());
  for (const std::string& job :
       {std::string(), std::string("a/b"), std::string("a b"),
        std::string("a,URI:spiffe://tributary/coordinator"),
        std::string(129, 'a')}) {
    EXPECT_FALSE(CheckJobInIdentity(job).ok()) << job;
  }
  EXPECT_THAT(std::string(CheckJobInIdentity("a/b").message()),
              HasSubstr("got \"a/b\""));
}

}  // namespace
}  // namespace tributary
