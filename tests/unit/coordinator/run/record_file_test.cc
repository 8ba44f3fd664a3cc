// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/record_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

constexpr size_t kPlenty = 1 << 20;

// While such an object lives, no file grows beyond `bytes`.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

using RecordFileTest = testing::TemporaryFolderTest;

TEST_F(RecordFileTest, WhatDoesNotFitIsKeptAndFollowsWithoutAGap) {
  RecordFile file = RecordFile::Open(Path("f"), kPlenty).value();
  file.Add("one\n");
  ASSERT_TRUE(file.Flush().ok());
  {
    const SmallFiles limit(6);  // in the middle of the second
    file.Add("two\n");
    EXPECT_TRUE(absl::IsResourceExhausted(file.Flush()));
    file.Add("three\n");
    EXPECT_FALSE(file.Flush().ok());
    EXPECT_EQ(Read("f"), "one\ntw");
    EXPECT_TRUE(file.keeps());
  }
  ASSERT_TRUE(file.Flush().ok());
  EXPECT_EQ(Read("f"), "one\ntwo\nthree\n");
  EXPECT_FALSE(file.keeps());
  EXPECT_EQ(file.given_up(), 0);
}

TEST_F(RecordFileTest, OfTooManyTheOldestWholeOnesAreGivenUp) {
  RecordFile file = RecordFile::Open(Path("f"), /*max_kept=*/10).value();
  {
    const SmallFiles limit(2);
    file.Add("one\n");
    EXPECT_FALSE(file.Flush().ok());
    for (const char* record : {"two\n", "six\n", "ten\n"}) file.Add(record);
    EXPECT_EQ(file.given_up(), 1);
  }
  ASSERT_TRUE(file.Flush().ok());
  EXPECT_EQ(Read("f"), "one\nsix\nten\n");
}

TEST_F(RecordFileTest, AFullDiskHasACodeOfItsOwn) {
  RecordFile file = RecordFile::Open("/dev/full", kPlenty).value();
  file.Add("one\n");
  EXPECT_EQ(file.Flush().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RecordFileTest, AFileThatSomebodyRemovesIsAnError) {
  RecordFile file = RecordFile::Open(Path("f"), kPlenty).value();
  std::filesystem::remove(Path("f"));
  file.Add("one\n");
  const absl::Status status = file.Flush();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("f was removed"), std::string::npos);
}

}  // namespace
}  // namespace tributary
