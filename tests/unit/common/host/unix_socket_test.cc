// SPDX-License-Identifier: Apache-2.0
#include "common/host/memory/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr absl::Duration kPatience = absl::Seconds(10);

struct Pair {
  UniqueFd listener, caller, called;
};

Pair MakePair(const std::string& address) {
  Pair pair;
  pair.listener = ListenUnix(address).value();
  pair.caller = ConnectUnix(address).value();
  pair.called = AcceptUnix(pair.listener);
  EXPECT_TRUE(pair.called.ok());
  return pair;
}

std::string Unique(const std::string& name) {
  return "@tributary-test-" + name + "-" + std::to_string(getpid());
}

using UnixSocketTest = testing::TemporaryFolderTest;

TEST_F(UnixSocketTest, AMessageCarriesADescriptor) {
  for (const std::string& address : {Unique("carry"), Path("socket")}) {
    const Pair pair = MakePair(address);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd read_end(ends[0]);
    {
      const UniqueFd write_end(ends[1]);
      TRIBUTARY_ASSERT_OK(
          SendUnix(pair.caller, "hello", write_end.get(), kPatience));
    }
    auto message = ReceiveUnix(pair.called, kPatience);
    TRIBUTARY_ASSERT_OK(message);
    EXPECT_EQ(message->bytes, "hello");
    ASSERT_TRUE(message->descriptor.ok());
    ASSERT_EQ(write(message->descriptor.get(), "x", 1), 1);
    char letter = 0;
    EXPECT_EQ(read(read_end.get(), &letter, 1), 1);
    EXPECT_EQ(letter, 'x');

    TRIBUTARY_ASSERT_OK(SendUnix(pair.called, "back", -1, kPatience));
    auto back = ReceiveUnix(pair.caller, kPatience);
    TRIBUTARY_ASSERT_OK(back);
    EXPECT_EQ(back->bytes, "back");
    EXPECT_FALSE(back->descriptor.ok());
  }
}

TEST_F(UnixSocketTest, NoCallWaitsForLongerThanItsTimeout) {
  const Pair pair = MakePair(Unique("timeout"));
  EXPECT_THAT(ReceiveUnix(pair.caller, absl::Milliseconds(1)).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "no message"));
  EXPECT_FALSE(AcceptUnix(pair.listener).ok());
  absl::Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) {
    status =
        SendUnix(pair.caller, std::string(4096, 'x'), -1, absl::ZeroDuration());
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(UnixSocketTest, APeerThatHasGoneIsAnError) {
  Pair pair = MakePair(Unique("gone"));
  pair.called = UniqueFd();
  EXPECT_THAT(ReceiveUnix(pair.caller, kPatience).status(),
              StatusIs(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_THAT(SendUnix(pair.caller, "x", -1, kPatience),
              StatusIs(absl::StatusCode::kUnavailable, ""));
}

TEST_F(UnixSocketTest, RefusesWhatItCannotUse) {
  const Pair pair = MakePair(Unique("refuse"));
  EXPECT_THAT(ListenUnix(Unique("refuse")).status(),
              StatusIs(absl::StatusCode::kUnavailable, "listen"));
  EXPECT_THAT(ConnectUnix(Unique("nobody")).status(),
              StatusIs(absl::StatusCode::kUnavailable, "connect"));
  for (const std::string& address : {std::string(), std::string(108, 'x')}) {
    EXPECT_THAT(ConnectUnix(address).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, "wanted 1 to"));
  }
  TRIBUTARY_ASSERT_OK(SendUnix(
      pair.caller, std::string(kMaxUnixMessageBytes + 1, 'x'), -1, kPatience));
  EXPECT_THAT(ReceiveUnix(pair.called, kPatience).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "more than"));
}

TEST_F(UnixSocketTest, TheUserOfTheOtherEndIsKnown) {
  const Pair pair = MakePair(Unique("user"));
  EXPECT_EQ(PeerUser(pair.called).value(), geteuid());
  EXPECT_EQ(PeerUser(pair.caller).value(), geteuid());
}

TEST_F(UnixSocketTest, ASocketIsAbandonedWhenNobodyListens) {
  const std::string path = Path("socket");
  EXPECT_FALSE(IsAbandonedUnix(path)) << "there is none";
  {
    const UniqueFd listener = ListenUnix(path).value();
    EXPECT_FALSE(IsAbandonedUnix(path));
  }
  EXPECT_TRUE(IsAbandonedUnix(path));
  Write("file", "no socket");
  EXPECT_FALSE(IsAbandonedUnix(Path("file")));
}

}  // namespace
}  // namespace tributary
