// SPDX-License-Identifier: Apache-2.0
#include "common/files/folder_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using testing::StatusIs;

class FolderRootsTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    fs::create_directories(Path("data/deep"));
    fs::create_directories(Path("data2"));
    Write("data/train.csv", "1");
    Write("data2/other.csv", "2");
    fs::create_symlink(Path("data2/other.csv"), Path("data/link.csv"));
    fs::create_symlink(Path("data2"), Path("data/folder"));
    fs::create_symlink(Path("data"), Path("alias"));
    fs::create_symlink(Path("data/ring"), Path("data/ring"));
  }
  absl::Status Check(const std::string& path) {
    return CheckBelow(Path(path), {Path("data")}, "--data-root");
  }
};

TEST_F(FolderRootsTest, WithoutRootsEverythingIsAllowed) {
  EXPECT_TRUE(CheckBelow("/etc/passwd", {}, "--data-root").ok());
}

TEST_F(FolderRootsTest, WhatLiesBelowARootIsAllowed) {
  for (const char* path : {"data", "data/", "data/train.csv", "data/new/file",
                           "data/deep/../train.csv", "alias/train.csv"}) {
    EXPECT_TRUE(Check(path).ok()) << path << Check(path);
  }
}

TEST_F(FolderRootsTest, WhatLiesElsewhereIsNot) {
  for (const char* path :
       {"", "data2", "data2/other.csv", "data/../data2/other.csv", "dat",
        "data/link.csv", "data/folder/other.csv", "data/folder/new.csv",
        "data/ring"}) {
    EXPECT_THAT(Check(path), StatusIs(absl::StatusCode::kPermissionDenied,
                                      "--data-root " + Path("data")))
        << path;
  }
}

TEST_F(FolderRootsTest, EachRootCounts) {
  const std::vector<std::string> roots = {Path("data"), Path("data2/"),
                                          Path("missing")};
  EXPECT_TRUE(CheckBelow(Path("data2/other.csv"), roots, "--data-root").ok());
  EXPECT_TRUE(CheckBelow(Path("data/link.csv"), roots, "--data-root").ok());
  EXPECT_THAT(CheckBelow(folder(), roots, "--data-root"),
              StatusIs(absl::StatusCode::kPermissionDenied, "data2/"));
}

}  // namespace
}  // namespace tributary
