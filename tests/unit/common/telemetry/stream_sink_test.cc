// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/stream_sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

namespace tributary {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StreamSinkTest : public ::testing::Test {
 protected:
  StreamSinkTest() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    logger_ = std::make_unique<spdlog::logger>(
        "", std::make_shared<StreamSink>(ends_[1]));
    logger_->set_pattern("%l %v");
  }
  ~StreamSinkTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  // Takes all text out of the pipe. Waits if the pipe is empty.
  std::string Read() {
    std::string text(1 << 20, '\0');
    const ssize_t n = read(ends_[0], text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

  int ends_[2] = {-1, -1};
  std::unique_ptr<spdlog::logger> logger_;
};

TEST_F(StreamSinkTest, LinesThatAreReadAreAllThere) {
  for (int i = 0; i < 100; ++i) {
    logger_->info("line {}", i);
    EXPECT_EQ(Read(), "info line " + std::to_string(i) + "\n");
  }
}

TEST_F(StreamSinkTest, APipeThatNobodyReadsKeepsNobodyWaiting) {
  const std::string filler(1000, 'x');
  for (int i = 0; i < 1000; ++i) logger_->info("{}", filler);
  const std::string before = Read();
  EXPECT_GT(before.size(), 32u << 10) << "as much as a pipe holds";
  EXPECT_THAT(before, Not(HasSubstr("left out")));
  logger_->info("somebody reads again");
  const std::string after = Read();
  EXPECT_THAT(after, HasSubstr("warning lines left out of this log, because "
                               "nobody read it: "));
  EXPECT_THAT(after, EndsWith("\ninfo somebody reads again\n"));
  logger_->info("as before");
  EXPECT_EQ(Read(), "info as before\n");
}

TEST_F(StreamSinkTest, ALineThatIsLongerThanAPieceIsWhole) {
  const std::string filler(10'000, 'x');
  logger_->error("{}", filler);
  EXPECT_EQ(Read(), "error " + filler + "\n");
}

TEST_F(StreamSinkTest, WhatFollowsALineWithoutEndIsOnALineOfItsOwn) {
  logger_->info("{}", std::string(1 << 20, 'x'));
  EXPECT_THAT(Read(), StartsWith("info xxx"));
  logger_->info("next");
  EXPECT_EQ(Read(),
            "\nwarning lines left out of this log, because nobody read it: 1\n"
            "info next\n");
}

TEST_F(StreamSinkTest, TheReaderMayBeGone) {
  const auto before = signal(SIGPIPE, SIG_IGN);  // as SetUpLog does
  close(std::exchange(ends_[0], -1));
  logger_->info("to nobody");
  EXPECT_EQ(write(ends_[1], "x", 1), -1) << "nobody can read it";
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace tributary
