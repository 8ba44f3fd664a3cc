// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/memory_listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/host/memory/shared_arena.h"
#include "common/host/memory/unix_socket.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;

using testing::kSoon;

class MemoryListenerTest : public testing::TemporaryFolderTest {
 protected:
  // Admits rank r as connection 100 + r; refuses rank 9.
  std::unique_ptr<MemoryListener> Start(const std::string& directory = "") {
    return MemoryListener::Start(
               {.directory = directory,
                .any_user = any_user_,
                .user = user_,
                .clock = &clock_,
                .accept = accept_,
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
  // Sends a hello on the socket; returns the answer.
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
  bool any_user_ = false;
  uid_t user_ = geteuid();
  std::function<UniqueFd(const UniqueFd&)> accept_ = AcceptUnix;
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

TEST_F(MemoryListenerTest, RefusalsDoNotFillTheLog) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  auto listener = Start();
  const auto refuse = [&] {
    const UniqueFd socket = ConnectUnix(listener->socket()).value();
    TRIBUTARY_EXPECT_OK(Say(socket, Hello(9), true));
  };
  for (int i = 0; i < 20; ++i) refuse();
  clock_.AdvanceMicros(1'000'000);
  refuse();
  listener.reset();
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("(and 19 before)"), std::string::npos) << text;
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

TEST_F(MemoryListenerTest, AnotherUserIsClosedUnlessAnyUserMayConnect) {
  user_ = geteuid() + 1;  // so that this process is another user
  const auto closed = Start();
  for (int i = 0; i < 100; ++i) {
    const UniqueFd socket = ConnectUnix(closed->socket()).value();
    EXPECT_THAT(ReceiveUnix(socket, kSoon).status(),
                StatusIs(absl::StatusCode::kUnavailable, "gone"));
  }
  any_user_ = true;
  const auto open = Start();
  const UniqueFd socket = ConnectUnix(open->socket()).value();
  TRIBUTARY_EXPECT_OK(Say(socket, Hello(0), true));
}

TEST_F(MemoryListenerTest, ARankHasOneConnectionAndASpare) {
  const auto listener = Start();
  std::vector<UniqueFd> sockets;
  const auto connect = [&](uint32_t rank) {
    sockets.push_back(ConnectUnix(listener->socket()).value());
    TRIBUTARY_EXPECT_OK(Say(sockets.back(), Hello(rank), true));
  };
  for (const uint32_t rank : {3, 4, 4, 3}) connect(rank);
  connect(4);
  EXPECT_EQ(AwaitGone(1), std::vector<uint64_t>{104});
  EXPECT_THAT(ReceiveUnix(sockets[1], kSoon).status(),
              StatusIs(absl::StatusCode::kUnavailable, "gone"));
  for (const size_t kept : {0, 2, 3, 4}) {
    EXPECT_THAT(ReceiveUnix(sockets[kept], absl::ZeroDuration()).status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded, ""))
        << kept;
  }
}

// Limits the open files of this process for as long as it lives.
class WithFiles {
 public:
  explicit WithFiles(rlim_t files) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit now = {files, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~WithFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(MemoryListenerTest, OfTooManyWorkersTheOldestMakesRoom) {
  EXPECT_EQ(MemoryListener::MostWorkers(1'024), 128u);
  EXPECT_EQ(MemoryListener::MostWorkers(1 << 20), 2'048u);
  EXPECT_EQ(MemoryListener::MostWorkers(UINT64_MAX), 2'048u);
  const auto listener = Start();
  const WithFiles few(256);
  std::vector<UniqueFd> workers;
  for (uint32_t rank = 10; rank < 10 + 256 / 8 + 1; ++rank) {
    workers.push_back(ConnectUnix(listener->socket()).value());
    TRIBUTARY_ASSERT_OK(Say(workers.back(), Hello(rank), true));
  }
  EXPECT_EQ(AwaitGone(1), std::vector<uint64_t>{110});
  EXPECT_THAT(ReceiveUnix(workers[1], absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(MemoryListenerTest, OfManySilentConnectionsTheOldestMakeRoom) {
  const auto listener = Start();
  const UniqueFd worker = ConnectUnix(listener->socket()).value();
  TRIBUTARY_ASSERT_OK(Say(worker, Hello(0), true));
  std::vector<UniqueFd> silent;
  constexpr size_t kMany = MemoryListener::kMaxSilent + 30;
  while (silent.size() < kMany) {
    // Not connected while as many wait to be accepted.
    if (auto socket = ConnectUnix(listener->socket()); socket.ok()) {
      silent.push_back(*std::move(socket));
    }
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_THAT(ReceiveUnix(silent[i], kSoon).status(),
                StatusIs(absl::StatusCode::kUnavailable, "gone"))
        << i;
  }
  // A worker gets in beside them, and the one that is there stays.
  const UniqueFd next = ConnectUnix(listener->socket()).value();
  TRIBUTARY_EXPECT_OK(Say(next, Hello(1), true));
  EXPECT_THAT(ReceiveUnix(worker, absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(MemoryListenerTest, WithoutFilesItPausesAndThenTakesTheConnection) {
  constexpr int kFailures = 4;
  int tries = 0;
  accept_ = [&tries](const UniqueFd& listener) {
    if (++tries > kFailures) return AcceptUnix(listener);
    errno = EMFILE;
    return UniqueFd();
  };
  const auto listener = Start();
  const absl::Time begin = absl::Now();
  const UniqueFd socket = ConnectUnix(listener->socket()).value();
  TRIBUTARY_EXPECT_OK(Say(socket, Hello(0), true));
  // A listener that does not pause tries again within microseconds.
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(50) * kFailures);
}

TEST_F(MemoryListenerTest, ADirectoryKeepsOnlySocketsOfLivingServers) {
  const std::string stale = Path("tributary-0000.sock");
  TRIBUTARY_ASSERT_OK(ListenUnix(stale));  // ends without removing its name
  Write("tributary-notes.txt", "stays");
  auto first = Start(folder());
  EXPECT_TRUE(absl::StartsWith(first->socket(), folder()));
  EXPECT_NE(access(stale.c_str(), F_OK), 0);
  const auto second = Start(folder());
  EXPECT_EQ(NumFiles(), 5);  // two sockets, each with its lock
  const UniqueFd socket = ConnectUnix(first->socket()).value();
  TRIBUTARY_EXPECT_OK(Say(socket, Hello(0), true));
  first.reset();
  EXPECT_EQ(NumFiles(), 3);
}

}  // namespace
}  // namespace tributary
