// SPDX-License-Identifier: Apache-2.0
// A disk that fills while a checkpoint is written leaves the last one valid.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AnyOf;
using testing::CheckpointModel;
using ::testing::ElementsAre;
using testing::StatusIs;
namespace fs = std::filesystem;

void ExpectWhole(const std::string& checkpoint) {
  for (const FileReport& report : VerifyCheckpoint(checkpoint)) {
    TRIBUTARY_EXPECT_OK(report.status);
  }
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class FullDiskTest : public testing::TemporaryFolderTest {
 protected:
  const CheckpointModel model_ = {};  // 506 KiB a checkpoint
};

// A file size limit stands in for a full disk, at every 16 KiB of every file.
TEST_F(FullDiskTest, AWriteThatFailsAnywhereLeavesTheLastOneValid) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  signal(SIGXFSZ, SIG_IGN);  // else it would kill us
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  int failures = 0;
  for (rlim_t limit = 0; limit < 250'000; limit += 16 << 10) {
    const rlimit small = {.rlim_cur = limit, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status status = model_.Write(folder(), 40, 2);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 Path("step-000000000040/shard-00")));
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 "File too large"));
    for (const std::string& name : FilesIn(Path("step-000000000040"))) {
      EXPECT_EQ(name, "shard-000-of-002.ckpt") << "the one that was whole";
    }
    EXPECT_EQ(NewestCheckpoint(folder())->step, 20);
    ++failures;
  }
  EXPECT_EQ(failures, 16);
  ExpectWhole(Path("step-000000000020"));
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 40, 2));
  ExpectWhole(Path("step-000000000040"));
}

// Mounts the folder as a disk of its own, where the system allows it.
class SmallDiskTest : public FullDiskTest {
 protected:
  ~SmallDiskTest() override {
    if (mounted_) umount2(folder().c_str(), MNT_DETACH);
  }
  bool Mount(const char* size) {
    mounted_ = mount("tmpfs", folder().c_str(), "tmpfs", 0, size) == 0;
    return mounted_;
  }

 private:
  bool mounted_ = false;
};

TEST_F(SmallDiskTest, ADiskThatFillsLeavesTheLastOneValid) {
  if (!Mount("size=900k")) GTEST_SKIP() << "mounting a tmpfs wants root";
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  const absl::Status status = model_.Write(folder(), 40, 2);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               Path("step-000000000040/shard-00")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "No space left on device"));
  EXPECT_THAT(FilesIn(Path("step-000000000040")),
              AnyOf(ElementsAre(), ElementsAre("shard-000-of-002.ckpt")));
  EXPECT_EQ(NewestCheckpoint(folder())->step, 20);
  ExpectWhole(Path("step-000000000020"));

  // Once there is room, the same step is written after all.
  fs::remove_all(Path("step-000000000020"));
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 40, 2));
  ExpectWhole(Path("step-000000000040"));
}

// The disk has room for the shards, but not for the manifest.
TEST_F(SmallDiskTest, AManifestThatDoesNotFitMakesNoCheckpoint) {
  if (!Mount("size=600k")) GTEST_SKIP() << "mounting a tmpfs wants root";
  const auto made = OpenCheckpointFolder(folder(), 40);
  ASSERT_TRUE(made.ok()) << made.status();
  v1::CheckpointManifest manifest = model_.Manifest(40);
  for (int shard = 0; shard < 2; ++shard) {
    const auto file = model_.WriteShard(*made, 40, shard, 2);
    ASSERT_TRUE(file.ok()) << file.status();
    *manifest.add_files() = *file;
  }
  Write("filler", std::string(200'000, 'x'));  // as far as it goes
  EXPECT_THAT(WriteManifest(folder(), manifest),
              StatusIs(absl::StatusCode::kResourceExhausted, "manifest.ckpt"));
  EXPECT_THAT(FilesIn(*made),
              ElementsAre("shard-000-of-002.ckpt", "shard-001-of-002.ckpt"));
  EXPECT_THAT(NewestCheckpoint(folder()),
              StatusIs(absl::StatusCode::kNotFound, "manifest.ckpt"));
}

}  // namespace
}  // namespace tributary
