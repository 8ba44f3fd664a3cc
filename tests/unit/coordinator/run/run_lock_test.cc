// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using RunLockTest = testing::TemporaryFolderTest;

TEST_F(RunLockTest, TheSecondIsToldWhoHoldsIt) {
  const std::unique_ptr<RunLock> lock = RunLock::Take(folder()).value();
  lock->SetAddress("10.0.0.1:7070");
  const absl::Status second = RunLock::Take(folder()).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()),
              AllOf(HasSubstr(folder() + " is in use by the coordinator at "
                                         "10.0.0.1:7070 ("),
                    HasSubstr(absl::StrCat("pid ", getpid(), ")"))));
}

TEST_F(RunLockTest, NothingIsLeftAndTheNextMayCome) {
  RunLock::Take(folder()).value();
  EXPECT_EQ(NumFiles(), 0);
  EXPECT_TRUE(RunLock::Take(folder()).ok());
}

// A process that was killed leaves such a file.
TEST_F(RunLockTest, AFileWithoutAHolderIsTaken) {
  Write(RunLock::kFile, "the coordinator at 10.0.0.1:7070 (host, pid 1)");
  const std::unique_ptr<RunLock> lock = RunLock::Take(folder()).value();
  EXPECT_EQ(Read(RunLock::kFile).find("10.0.0.1"), std::string::npos);
}

TEST_F(RunLockTest, ARemovedOrReplacedFileIsNoticedAndLeftAlone) {
  std::unique_ptr<RunLock> lock = RunLock::Take(folder()).value();
  EXPECT_TRUE(lock->Check().ok());
  std::filesystem::remove(Path(RunLock::kFile));
  EXPECT_EQ(lock->Check().code(), absl::StatusCode::kNotFound);
  Write(RunLock::kFile, "another's");
  EXPECT_EQ(lock->Check().code(), absl::StatusCode::kNotFound);
  lock.reset();
  EXPECT_EQ(Read(RunLock::kFile), "another's");
}

TEST_F(RunLockTest, WhoLeavesItToASuccessorRemovesNothing) {
  RunLock::Take(folder()).value()->Leave();
  EXPECT_EQ(NumFiles(), 1);
}

}  // namespace
}  // namespace tributary
