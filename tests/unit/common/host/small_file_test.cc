// SPDX-License-Identifier: Apache-2.0
#include "common/host/small_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "common/base/unique_fd.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

class SmallFileTest : public testing::TemporaryFolderTest {
 protected:
  absl::StatusOr<std::string> ReadAtMost(size_t bytes, const std::string& name,
                                         absl::Duration patience = {}) {
    return ReadSmallFile(Path(name), bytes, patience);
  }
};

TEST_F(SmallFileTest, ReadsUpToTheLimit) {
  Write("file", "four");
  EXPECT_EQ(ReadAtMost(4, "file").value(), "four");
  EXPECT_THAT(ReadAtMost(3, "file"),
              StatusIs(kInvalid, "file: wants at most 3 bytes"));
  Write("empty", "");
  EXPECT_EQ(ReadAtMost(4, "empty").value(), "");
}

TEST_F(SmallFileTest, WhatIsNoFileIsNamed) {
  EXPECT_THAT(ReadAtMost(4, "none"),
              StatusIs(absl::StatusCode::kNotFound, "there is no such file"));
  EXPECT_THAT(ReadAtMost(4, ""), StatusIs(kInvalid, "got a folder"));
  EXPECT_THAT(ReadSmallFile("/dev/zero", 1 << 20),
              StatusIs(kInvalid, "/dev/zero: wants at most 1048576 bytes"));
}

TEST_F(SmallFileTest, WhatIsMissingIsNoErrorOfReading) {
  Write("file", "");
  TRIBUTARY_EXPECT_OK(CheckReadable(Path("file")));
  TRIBUTARY_EXPECT_OK(CheckReadable(Path("none")));
  TRIBUTARY_EXPECT_OK(CheckReadable(Path("file/below")));
  TRIBUTARY_EXPECT_OK(CheckReadable(""));
  // A loop of links cannot be looked at by root either.
  std::filesystem::create_symlink(Path("loop"), Path("loop"));
  EXPECT_THAT(CheckReadable(Path("loop")),
              StatusIs(kInvalid, "loop cannot be read: Too many levels"));
}

// In a process of its own, which gives up the rights of root.
TEST_F(SmallFileTest, AnotherUsersFilesCannotBeRead) {
  Write("file", "");
  std::filesystem::create_directory(Path("folder"));
  ASSERT_EQ(chmod(Path("file").c_str(), 0), 0);
  ASSERT_EQ(chmod(Path("folder").c_str(), 0), 0);
  for (const std::string& path :
       {Path("file"), Path("folder"), Path("folder/below")}) {
    EXPECT_EXIT(
        {
          constexpr uid_t kNobody = 65534;
          if (geteuid() == 0 && setuid(kNobody) != 0) _exit(1);
          std::cerr << CheckReadable(path).message();
          _exit(0);
        },
        ::testing::ExitedWithCode(0), "cannot be read: Permission denied");
  }
}

TEST_F(SmallFileTest, APipeIsReadAndNeverWaitedForInVain) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadAtMost(9, "pipe").value(), "") << "nobody writes";
  UniqueFd writer(open(Path("pipe").c_str(), O_RDWR));
  ASSERT_EQ(write(writer.get(), "part", 4), 4);
  EXPECT_THAT(ReadAtMost(9, "pipe"),
              StatusIs(kInvalid, "pipe: its writer did not finish within 0"));
}

TEST_F(SmallFileTest, ATextThatCannotBeReadIsEmpty) {
  Write("file", "one\ntwo");
  EXPECT_EQ(ReadText(Path("file")), "one\ntwo");
  EXPECT_EQ(ReadText(Path("none")), "");
  EXPECT_EQ(ReadText(Path("")), "") << "a folder";
}

}  // namespace
}  // namespace tributary
