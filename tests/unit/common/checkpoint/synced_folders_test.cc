// SPDX-License-Identifier: Apache-2.0
// This program's fsync records which files and folders are synced to the disk.
// The entry of a folder is safe only once its parent is synced.
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_claim.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

std::mutex synced_mu;
std::vector<std::string> synced;

}  // namespace
}  // namespace tributary

extern "C" int fsync(int fd) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(
      "/proc/self/fd/" + std::to_string(fd), error);
  {
    std::lock_guard<std::mutex> lock(tributary::synced_mu);
    tributary::synced.push_back(path.string());
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace tributary {
namespace {

using ::testing::Contains;
using SyncedFoldersTest = testing::TemporaryFolderTest;

TEST_F(SyncedFoldersTest, TheFolderOfACheckpointIsSafeBeforeItsManifest) {
  const testing::CheckpointModel model;
  const auto made = OpenCheckpointFolder(folder(), 20);
  TRIBUTARY_ASSERT_OK(made);
  v1::CheckpointManifest manifest = model.Manifest(20);
  *manifest.add_files() = *model.WriteShard(*made, 20, 0, 1);
  synced.clear();
  TRIBUTARY_ASSERT_OK(WriteManifest(folder(), manifest));
  const auto directory = std::find(synced.begin(), synced.end(), folder());
  ASSERT_NE(directory, synced.end());
  EXPECT_NE(std::find(directory, synced.end(), *made), synced.end())
      << "the manifest gets its name after it";
}

TEST_F(SyncedFoldersTest, SoAreTheFoldersThatAClaimMakes) {
  synced.clear();
  TRIBUTARY_ASSERT_OK(CheckpointClaim::Take(Path("a/b")));
  EXPECT_THAT(synced, Contains(folder()));
  EXPECT_THAT(synced, Contains(Path("a")));
}

}  // namespace
}  // namespace tributary
