// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/memory_listener.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "common/host/shared_arena.h"
#include "common/host/unix_socket.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr absl::Duration kSoon = absl::Seconds(30);

class MemoryListenerTest : public testing::TemporaryFolderTest {
 protected:
  // Admits rank r as connection 100 + r; refuses rank 9.
  std::unique_ptr<MemoryListener> Start(const std::string& directory = "") {
    return MemoryListener::Start(
               {.directory = directory,
                .clock = &clock_,
                .admit = [this](const v1::SharedMemoryHello& hello,
                                const UniqueFd& memory)
                    -> absl::StatusOr<MemoryListener::Admitted> {
                  if (hello.rank() == 9) {
                    return absl::InvalidArgumentError("not rank 9");
                  }
                  EXPECT_TRUE(MappedArena::Map(memory).ok());
                  return MemoryListener::Admitted{100 + hello.rank(),
                                                  arena_->Share().value()};
                },
                .on_gone =
                    [this](uint64_t connection) {
                      absl::MutexLock lock(&mu_);
                      gone_.push_back(connection);
                    }})
        .value();
  }

  static std::string Hello(uint32_t rank) {
    v1::SharedMemoryHello hello;
    hello.set_token(1);  // a message without bytes would look like an end
    hello.set_rank(rank);
    return hello.SerializeAsString();
  }
  // Connects and sends a hello; the answer.
  absl::StatusOr<UnixMessage> Say(const UniqueFd& socket,
                                  const std::string& bytes, bool with_memory) {
    const UniqueFd memory = arena_->Share().value();
    TRIBUTARY_EXPECT_OK(
        SendUnix(socket, bytes, with_memory ? memory.get() : -1, kSoon));
    return ReceiveUnix(socket, kSoon);
  }

  std::vector<uint64_t> AwaitGone(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto all = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return gone_.size() >= count;
    };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&all), kSoon));
    return gone_;
  }

  ManualClock clock_;
  const std::shared_ptr<SharedArena> arena_ = SharedArena::Create(1).value();
  absl::Mutex mu_;
  std::vector<uint64_t> gone_ ABSL_GUARDED_BY(mu_);
};

TEST_F(MemoryListenerTest, WorkersGetTheirConnectionAndTheServersMemory) {
  auto listener = Start();
  std::vector<UniqueFd> sockets;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    sockets.push_back(ConnectUnix(listener->socket()).value());
    const auto answer = Say(sockets.back(), Hello(rank), true);
    TRIBUTARY_ASSERT_OK(answer);
    v1::SharedMemoryWelcome welcome;
    ASSERT_TRUE(welcome.ParseFromString(answer->bytes));
    EXPECT_EQ(welcome.connection(), 100 + rank);
    EXPECT_EQ(welcome.error(), "");
    EXPECT_TRUE(MappedArena::Map(answer->descriptor).ok());
  }
  sockets[1] = UniqueFd();
  EXPECT_EQ(AwaitGone(1), std::vector<uint64_t>{101});
  // Another message than a hello ends a connection, too.
  TRIBUTARY_ASSERT_OK(SendUnix(sockets[2], Hello(2), -1, kSoon));
  EXPECT_EQ(AwaitGone(2), (std::vector<uint64_t>{101, 102}));
  listener.reset();
  EXPECT_EQ(AwaitGone(3), (std::vector<uint64_t>{101, 102, 100}));
}

TEST_F(MemoryListenerTest, ARefusedWorkerLearnsWhy) {
  const auto listener = Start();
  const UniqueFd socket = ConnectUnix(listener->socket()).value();
  const auto answer = Say(socket, Hello(9), true);
  TRIBUTARY_ASSERT_OK(answer);
  v1::SharedMemoryWelcome welcome;
  ASSERT_TRUE(welcome.ParseFromString(answer->bytes));
  EXPECT_EQ(welcome.error(), "not rank 9");
  EXPECT_FALSE(answer->descriptor.ok());
  EXPECT_THAT(ReceiveUnix(socket, kSoon).status(),
              StatusIs(absl::StatusCode::kUnavailable, "gone"));
}

TEST_F(MemoryListenerTest, WhatIsNoHelloEndsTheConnection) {
  const auto listener = Start();
  for (const bool with_memory : {true, false}) {
    const UniqueFd socket = ConnectUnix(listener->socket()).value();
    EXPECT_THAT(
        Say(socket, with_memory ? "\xff\xff" : Hello(0), with_memory).status(),
        StatusIs(absl::StatusCode::kUnavailable, ""));
  }
}

TEST_F(MemoryListenerTest, AConnectionThatSaysNothingIsClosed) {
  const auto listener = Start();
  const UniqueFd silent = ConnectUnix(listener->socket()).value();
  const UniqueFd other = ConnectUnix(listener->socket()).value();
  TRIBUTARY_ASSERT_OK(Say(other, Hello(0), true));  // both are accepted
  clock_.AdvanceMicros(MemoryListener::kHelloMicros + 1);
  const UniqueFd wakes = ConnectUnix(listener->socket()).value();
  EXPECT_THAT(ReceiveUnix(silent, kSoon).status(),
              StatusIs(absl::StatusCode::kUnavailable, ""));
  EXPECT_THAT(ReceiveUnix(other, absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(MemoryListenerTest, ADirectoryKeepsOnlySocketsOfLivingServers) {
  const std::string stale = Path("tributary-0000.sock");
  TRIBUTARY_ASSERT_OK(ListenUnix(stale));  // ends without removing its name
  Write("tributary-notes.txt", "stays");
  auto first = Start(folder());
  EXPECT_TRUE(absl::StartsWith(first->socket(), folder()));
  EXPECT_NE(access(stale.c_str(), F_OK), 0);
  const auto second = Start(folder());
  EXPECT_EQ(NumFiles(), 3);
  const UniqueFd socket = ConnectUnix(first->socket()).value();
  TRIBUTARY_EXPECT_OK(Say(socket, Hello(0), true));
  first.reset();
  EXPECT_EQ(NumFiles(), 2);
}

}  // namespace
}  // namespace tributary
