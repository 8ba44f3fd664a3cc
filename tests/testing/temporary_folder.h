// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace tributary::testing {

// Provides a directory that only the running test and process use.
class TemporaryFolderTest : public ::testing::Test {
 protected:
  TemporaryFolderTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string(info->test_suite_name()) + "." + info->name() + "." +
               std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  // Tries again, because a helper of a killed process may still remove files.
  ~TemporaryFolderTest() override {
    std::error_code error;
    for (int attempt = 0; attempt < 10; ++attempt) {
      std::filesystem::remove_all(folder_, error);
      if (!error) break;
    }
  }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream stream(Path(name), std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(stream)), {});
  }
  std::string folder() const { return folder_.string(); }
  int NumFiles() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(folder_),
                      std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace tributary::testing
