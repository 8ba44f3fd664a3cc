// SPDX-License-Identifier: Apache-2.0
#include "common/host/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

TEST(AddressTest, HostAndPortAreWanted) {
  TRIBUTARY_EXPECT_OK(CheckAddress("127.0.0.1:0"));
  TRIBUTARY_EXPECT_OK(CheckAddress("[::1]:65535"));
  for (const char* wrong : {"", "host", ":80", "host:", "host:65536", "h:-1"}) {
    EXPECT_FALSE(CheckAddress(wrong).ok()) << wrong;
  }
  EXPECT_THAT(CheckAddress("0.0.0.0:99999"),
              testing::StatusIs(
                  absl::StatusCode::kInvalidArgument,
                  "the port of 0.0.0.0:99999 is too large: at most 65535"));
}

TEST(AddressTest, AnIpv6AddressWithoutBracketsIsAmbiguous) {
  for (const char* bare : {"::1:0", ":::7000", "fe80::1:80", "[::1:80"}) {
    EXPECT_THAT(
        CheckAddress(bare),
        testing::StatusIs(absl::StatusCode::kInvalidArgument, "wants brackets"))
        << bare;
  }
  EXPECT_THAT(CheckAddress("::1:0"),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "brackets: [::1]:0, got \"::1:0\""));
}

TEST(AddressTest, AUrlIsNoAddress) {
  const auto refused = [](absl::string_view said) {
    return testing::StatusIs(absl::StatusCode::kInvalidArgument,
                             std::string(said));
  };
  EXPECT_THAT(CheckAddress("http://127.0.0.1:7070"),
              refused("HOST:PORT without http://, as in 127.0.0.1:7070, got "
                      "\"http://127.0.0.1:7070\""));
  EXPECT_THAT(CheckAddress("grpc://[::1]:7070/status"),
              refused("without grpc://, as in [::1]:7070, got"));
  EXPECT_THAT(CheckAddress("https://node-a"),
              refused("HOST:PORT without https://, got"));
}

TEST(AddressTest, AResolverGetsIpv6AddressesWithoutBrackets) {
  EXPECT_EQ(LookupHostOf("[fd00::1]:7090"), "fd00::1");
  EXPECT_EQ(LookupHostOf("10.0.0.1:7090"), "10.0.0.1");
}

TEST(AddressTest, AWildcardIsReachedUnderTheMachinesName) {
  EXPECT_EQ(ReachableAddress("10.0.0.1:0", 7090), "10.0.0.1:7090");
  EXPECT_EQ(ReachableAddress("[::1]:0", 7090), "[::1]:7090");
  for (const char* wildcard : {"0.0.0.0:0", "[::]:0"}) {
    const std::string reached = ReachableAddress(wildcard, 7090);
    EXPECT_EQ(reached.find(wildcard, 0), std::string::npos) << reached;
    EXPECT_EQ(std::string(HostOf(reached)) + ":7090", reached);
    EXPECT_NE(HostOf(reached), "");
  }
}

}  // namespace
}  // namespace tributary
