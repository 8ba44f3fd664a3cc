// SPDX-License-Identifier: Apache-2.0
#include "common/files/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/unique_fd.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;
using AtomicFileTest = testing::TemporaryFolderTest;

TEST_F(AtomicFileTest, TheOldFileStandsUntilTheNewOneIsWhole) {
  Write("weights", "old");
  {
    auto file = AtomicFile::Create(Path("weights"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("new ").ok());
    EXPECT_EQ(Read("weights"), "old");
    ASSERT_TRUE((*file)->Append("text").ok());
    ASSERT_TRUE((*file)->Commit().ok());
  }
  EXPECT_EQ(Read("weights"), "new text");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(AtomicFileTest, NothingStaysOfAFileThatIsNotCommitted) {
  {
    auto file = AtomicFile::Create(Path("weights"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("half").ok());
    EXPECT_EQ(NumFiles(), 1);
  }
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(AtomicFileTest, WhatAKilledWriterLeftIsRemovedAndNothingElse) {
  Write("weights", "whole");
  const pid_t writer = fork();
  if (writer == 0) {
    auto file = AtomicFile::Create(Path("weights"));
    kill(getpid(), SIGKILL);  // no destructor runs
  }
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
  EXPECT_EQ(NumFiles(), 2);
  RemoveHalfWritten(folder());
  EXPECT_EQ(NumFiles(), 1);
  EXPECT_EQ(Read("weights"), "whole");
}

TEST_F(AtomicFileTest, TwoWritersOfOneNameDoNotMix) {
  auto first = AtomicFile::Create(Path("weights"));
  auto second = AtomicFile::Create(Path("weights"));
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*first)->Append("first").ok());
  ASSERT_TRUE((*second)->Append("second").ok());
  ASSERT_TRUE((*second)->Commit().ok());
  ASSERT_TRUE((*first)->Commit().ok());
  EXPECT_EQ(Read("weights"), "first");
}

TEST_F(AtomicFileTest, AnOutputIsWrittenIntoAPipeOrDevice) {
  const std::string pipe = Path("pipe"), link = Path("link");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, link);
  const UniqueFd reader(open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  for (const std::string& path : {pipe, link}) {
    TRIBUTARY_EXPECT_OK(WriteOutput(path, "rows"));
    char text[8] = {};
    EXPECT_EQ(read(reader.get(), text, sizeof(text)), 4);
    EXPECT_STREQ(text, "rows");
    EXPECT_TRUE(std::filesystem::is_fifo(path));
  }
  EXPECT_THAT(WriteOutput("/dev/full", "rows"),
              StatusIs(absl::StatusCode::kResourceExhausted, "/dev/full"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  TRIBUTARY_EXPECT_OK(WriteOutput(Path("file"), "rows"));
  EXPECT_EQ(Read("file"), "rows");
}

TEST_F(AtomicFileTest, AMissingFolderIsAnErrorThatNamesThePath) {
  const absl::Status status = WriteFileAtomically(Path("no/weights"), "x");
  EXPECT_EQ(status.message(),
            Path("no/weights") + ": create: No such file or directory");
}

TEST_F(AtomicFileTest, AFolderUnderTheNameIsAnErrorAndNothingStays) {
  std::filesystem::create_directory(Path("weights"));
  const absl::Status status = WriteFileAtomically(Path("weights"), "x");
  EXPECT_EQ(status.message(), Path("weights") + ": rename: Is a directory");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(AtomicFileTest, AWriteThatFailsLeavesTheOldFile) {
  Write("weights", "old");
  // A file size limit stands in for a full disk; its signal would kill us.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      WriteFileAtomically(Path("weights"), std::string(1001, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.message(),
            Path("weights") + ": write: File too large (ulimit -f)");
  EXPECT_EQ(Read("weights"), "old");
  EXPECT_EQ(NumFiles(), 1);
}

}  // namespace
}  // namespace tributary
