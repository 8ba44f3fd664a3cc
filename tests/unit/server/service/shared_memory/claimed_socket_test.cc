// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/claimed_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/host/memory/unix_socket.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

class ClaimedSocketTest : public testing::TemporaryFolderTest {
 protected:
  static bool Exists(const std::string& path) {
    return access(path.c_str(), F_OK) == 0;
  }
  // Another server starts in the folder, which removes what was left behind.
  void StartAnother() { TRIBUTARY_EXPECT_OK(ClaimedSocket::Claim(folder())); }
  // A file that a process has locked.
  static UniqueFd Locked(const std::string& path) {
    UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(flock(file.get(), LOCK_EX | LOCK_NB), 0);
    return file;
  }
  // A socket between bind and listen.
  static UniqueFd Bound(const std::string& path) {
    UniqueFd bound(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(bound.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    return bound;
  }
};

TEST_F(ClaimedSocketTest, ASocketOfAKilledServerIsRemovedWithItsLock) {
  const std::string dead = Path("tributary-dead.sock");
  TRIBUTARY_ASSERT_OK(ListenUnix(dead));
  { const UniqueFd gone = Locked(dead + ".lock"); }
  const std::string unbound = Path("tributary-unbound.sock.lock");
  { const UniqueFd gone = Locked(unbound); }
  StartAnother();
  EXPECT_FALSE(Exists(dead));
  EXPECT_FALSE(Exists(dead + ".lock"));
  EXPECT_FALSE(Exists(unbound));
  EXPECT_EQ(NumFiles(), 0);
}

// The server's queue is full, like that of a server that is stopped.
TEST_F(ClaimedSocketTest, ABusyServerKeepsItsSocket) {
  auto busy = ClaimedSocket::Claim(folder());
  TRIBUTARY_ASSERT_OK(busy);
  const std::string address = (*busy)->address();
  const UniqueFd listener = ListenUnix(address).value();
  std::vector<UniqueFd> waiting;
  while (true) {
    auto connection = ConnectUnix(address);
    if (!connection.ok()) break;
    waiting.push_back(*std::move(connection));
  }
  StartAnother();
  EXPECT_TRUE(Exists(address));
  // Even without its lock: its queue is full, so the server lives.
  ASSERT_EQ(unlink((address + ".lock").c_str()), 0);
  StartAnother();
  EXPECT_TRUE(Exists(address));
}

TEST_F(ClaimedSocketTest, AServerThatIsAboutToListenKeepsItsSocket) {
  auto starting = ClaimedSocket::Claim(folder());
  TRIBUTARY_ASSERT_OK(starting);
  StartAnother();
  EXPECT_TRUE(Exists((*starting)->address() + ".lock")) << "not bound yet";
  const UniqueFd bound = Bound((*starting)->address());
  StartAnother();
  EXPECT_TRUE(Exists((*starting)->address()));
}

TEST_F(ClaimedSocketTest, WhatIsNoSocketStays) {
  Write("tributary-notes.sock", "mine");
  Write("tributary-notes.txt", "mine");
  TRIBUTARY_ASSERT_OK(ListenUnix(Path("another.sock")));
  StartAnother();
  EXPECT_EQ(NumFiles(), 3);
}

TEST_F(ClaimedSocketTest, ServersOfOneFolderHaveNamesOfTheirOwn) {
  auto one = ClaimedSocket::Claim(folder());
  auto other = ClaimedSocket::Claim(folder());
  TRIBUTARY_ASSERT_OK(one);
  TRIBUTARY_ASSERT_OK(other);
  EXPECT_NE((*one)->address(), (*other)->address());
  EXPECT_EQ(NumFiles(), 2);
  *one = nullptr;
  *other = nullptr;
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(ClaimedSocketTest, WithoutAFolderTheNameIsAbstract) {
  const auto socket = ClaimedSocket::Claim("");
  TRIBUTARY_ASSERT_OK(socket);
  EXPECT_TRUE(absl::StartsWith((*socket)->address(), "@tributary-"));
}

TEST_F(ClaimedSocketTest, AFolderThatIsNotThereIsAnErrorThatNamesIt) {
  EXPECT_THAT(
      ClaimedSocket::Claim(Path("nowhere")),
      testing::StatusIs(absl::StatusCode::kUnavailable, Path("nowhere")));
}

}  // namespace
}  // namespace tributary
