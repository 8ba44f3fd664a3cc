// A disk that is full while checkpoints are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class DiskTest : public FaultTest {
 protected:
  // A small disk of its own for checkpoints.
  void SetUp() override {
    FaultTest::SetUp();
    fs::create_directory(disk_);
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, size()) != 0) {
      const std::string why = strerror(errno);
      GTEST_SKIP() << "a tmpfs cannot be mounted here: " << why;
    }
    mounted_ = true;
  }
  void TearDown() override {
    FaultTest::TearDown();
    if (!mounted_) return;
    EXPECT_EQ(umount(disk_.c_str()), 0) << strerror(errno);
  }

  virtual const char* size() const { return "size=1m"; }

  // Takes every byte that is left.
  void Fill() {
    std::ofstream filler(disk_ + "/filler", std::ios::binary);
    const std::string page(4096, 'x');
    while (filler << page << std::flush) {
    }
  }
  testing::ProcessResult Verify() {
    return testing::RunProcess(
        {testing::Program("tributary"), "checkpoint", "verify", disk_});
  }
  // Checkpoints that are whole, and folders of others.
  std::pair<int, int> Count() {
    std::pair<int, int> count;
    for (const auto& entry : fs::directory_iterator(disk_)) {
      if (!entry.is_directory()) continue;
      ++(fs::exists(entry.path() / "manifest.ckpt") ? count.first
                                                    : count.second);
    }
    return count;
  }

  const std::string disk_ = Path("disk");
  bool mounted_ = false;
};

TEST_F(DiskTest, TheRunGoesOnAndTheLastCheckpointStaysWhileTheDiskIsFull) {
  const std::vector<std::string> words = {"--set", "training.epochs=150"};
  std::vector<std::string> with_checkpoints = words;
  for (const std::string& field :
       {std::string("checkpoint.every_steps=50"),
        absl::StrCat("checkpoint.directory=", disk_)}) {
    with_checkpoints.insert(with_checkpoints.end(), {"--set", field});
  }
  auto train = Train("run", with_checkpoints);
  const std::string first = WaitForCheckpoint(disk_);
  ASSERT_NE(first, "");
  Fill();
  ASSERT_TRUE(train->WaitForOutput("failed: server", kSoon)) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("No space left on device"));
  const testing::ProcessResult full = Verify();
  EXPECT_EQ(full.exit_code, 0) << full.output;
  EXPECT_TRUE(Eventually([&] { return Count().second == 0; }))
      << "what a failed one has written goes away";

  fs::remove(disk_ + "/filler");
  EXPECT_NE(WaitForCheckpoint(disk_, first), "") << "there is room again";
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  const testing::ProcessResult end = Verify();
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_EQ(Count(), std::make_pair(3, 0));
  for (const auto& entry : fs::recursive_directory_iterator(disk_)) {
    EXPECT_FALSE(absl::StrContains(entry.path().string(), ".partial-"));
  }
  EXPECT_EQ(Summary("run")["checkpoint_step"], 2400);
  EXPECT_EQ(Sha256("run"), Undisturbed(words));
}

// The run directory itself is on the small disk, with everything in it.
class RunDirectoryDiskTest : public DiskTest {
 protected:
  const char* size() const override { return "size=8m"; }

  void ExpectEveryStepOnce(int64_t steps) {
    std::istringstream lines(Read("disk/run/metrics.jsonl"));
    int64_t step = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(json::parse(line)["step"], ++step);
    }
    EXPECT_EQ(step, steps);
  }
};

TEST_F(RunDirectoryDiskTest, TrainingGoesOnAndWhatItHasToSayIsWrittenLater) {
  const std::vector<std::string> words = {"--set", "training.epochs=150"};
  auto train = Train("disk/run", words);
  ASSERT_TRUE(train->WaitForOutput("epoch 3/150: test", kSoon));
  Fill();
  ASSERT_TRUE(train->WaitForOutput("what is recorded waits for room", kSoon))
      << train->output();
  EXPECT_THAT(train->output(), HasSubstr("No space left on device"));
  // Steps are made and shown meanwhile.
  ASSERT_TRUE(train->WaitForOutput("epoch 75/150: test", kSoon))
      << train->output();
  fs::remove(disk_ + "/filler");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("there is room on the disk again"));
  ExpectEveryStepOnce(2400);
  EXPECT_EQ(Summary("disk/run")["evaluations"].size(), 150u);
  EXPECT_EQ(Sha256("disk/run"), Undisturbed(words));
}

TEST_F(RunDirectoryDiskTest, TheEndOfTheJobWaitsForRoom) {
  auto train = Train("disk/run");
  ASSERT_TRUE(train->WaitForOutput("epoch 5/40: test", kSoon));
  Fill();
  ASSERT_TRUE(train->WaitForOutput(
      "the job waits until the coordinator's state can be saved", kSoon))
      << train->output();
  EXPECT_FALSE(fs::exists(disk_ + "/run/weights.safetensors"));
  fs::remove(disk_ + "/filler");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  ExpectEveryStepOnce(640);
  EXPECT_EQ(Sha256("disk/run"), Undisturbed());
}

}  // namespace
}  // namespace tributary
