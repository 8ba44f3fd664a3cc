// SPDX-License-Identifier: Apache-2.0
// A disk that is full, becomes read-only or breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

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
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class DiskTest : public FaultTest {
 protected:
  // Mounts a small disk for checkpoints.
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

  // Fills the disk completely.
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
  // Returns the numbers of complete and of incomplete checkpoints.
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

// The limit is `ulimit -f`. By default it would end the process with SIGXFSZ.
TEST_F(DiskTest, ALimitOfTheSizeOfFilesIsLikeAFullDisk) {
  SetEnvironment({"XDG_STATE_HOME=" + Path("state")});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 65536, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto train =
      Train("run", {"--set", "cluster.lease_seconds=2", "--set",
                    "strategy.parameter_server.sync_timeout_seconds=4"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(train->WaitForOutput("waiting for room for the summary", kSoon));
  auto list = Start({"tributary", "list"});
  EXPECT_EQ(list->Wait(kSoon), 0);
  EXPECT_THAT(list->output(), HasSubstr("has closed its port"));
  EXPECT_EQ(train->Wait(kSoon), 1) << "not all lines are recorded";
  EXPECT_THAT(train->output(),
              HasSubstr("metrics.jsonl: write: File too large (ulimit -f)"));
  EXPECT_EQ(fs::file_size(Path("run/metrics.jsonl")), 65536u);
  EXPECT_EQ(Summary("run")["status"], "done");
  EXPECT_EQ(Sha256("run"), Undisturbed());
}

TEST_F(DiskTest, ADiskThatBecomesReadOnlyCostsCheckpointsAlone) {
  auto train = Train("run", {"--set", "training.epochs=150", "--set",
                             "checkpoint.every_steps=50", "--set",
                             absl::StrCat("checkpoint.directory=", disk_)});
  ASSERT_NE(WaitForCheckpoint(disk_), "");
  // The remount fails with EBUSY while a file on the disk is being written.
  ASSERT_TRUE(Eventually([&] {
    return mount(nullptr, disk_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY,
                 nullptr) == 0;
  })) << strerror(errno);
  ASSERT_TRUE(train->WaitForOutput("Read-only file system", kSoon))
      << train->output();
  EXPECT_EQ(Verify().exit_code, 0);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_EQ(Sha256("run"), Undisturbed({"--set", "training.epochs=150"}));
}

// The whole run directory is on the small disk.
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
  // Training continues and is shown while the disk is full.
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

// One call fails with EIO. Data that did not reach the disk must be written
// again to a new file: after a failed fsync the kernel may have dropped the
// dirty pages, and a second fsync of the same file would succeed.
class BrokenDiskTest : public FaultTest {
 protected:
  // `fault`: the call that fails, such as "fsync coordinator.state 2", the
  // second fsync of that file (failing_disk.cc).
  void Break(const std::string& fault) {
    SetEnvironment({"LD_PRELOAD=" + testing::Program("libfailing_disk.so"),
                    "TRIBUTARY_DISK_FAULT=" + fault,
                    "TRIBUTARY_DISK_FAULT_FIRED=" + Path("broken"),
                    // The address sanitizer's runtime expects to be loaded
                    // first.
                    "ASAN_OPTIONS=verify_asan_link_order=0"});
  }
  void ExpectFired() { EXPECT_TRUE(fs::exists(Path("broken"))); }
  void ExpectUndisturbed(const std::vector<std::string>& words = {}) {
    ExpectFired();
    SetEnvironment({});
    EXPECT_EQ(Sha256("run"), Undisturbed(words));
  }
};

TEST_F(BrokenDiskTest, TheStateIsWrittenAnew) {
  Break("fsync coordinator.state 2");
  auto train = Train("run");
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("cannot save its state"));
  EXPECT_THAT(train->output(),
              HasSubstr("coordinator.state: fsync: Input/output error"));
  EXPECT_THAT(train->output(), HasSubstr("state is saved again"));
  ExpectUndisturbed();
}

class BrokenCheckpointTest : public BrokenDiskTest,
                             public ::testing::WithParamInterface<const char*> {
};

TEST_P(BrokenCheckpointTest, AFileThatFailsCostsItsCheckpointAlone) {
  Break(absl::StrCat("fsync ", GetParam(), " 2"));
  auto train = Train("run", {"--set", "checkpoint.every_steps=100"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  EXPECT_THAT(train->output(), HasSubstr("fsync: Input/output error"));
  const testing::ProcessResult verified =
      testing::RunProcess({testing::Program("tributary"), "checkpoint",
                           "verify", Path("run/checkpoints")});
  EXPECT_EQ(verified.exit_code, 0) << verified.output;
  EXPECT_EQ(Summary("run")["checkpoint_step"], 640);
  ExpectUndisturbed();
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenCheckpointTest,
                         ::testing::Values("shard-", "manifest.ckpt"),
                         [](const ::testing::TestParamInfo<const char*>& info) {
                           return absl::StrCat("File", info.index);
                         });

TEST_F(BrokenDiskTest, WhatCannotBeWrittenAnewFailsTheJobAndIsNamed) {
  // The first write of events for TensorBoard creates the file, before the job.
  for (const auto& [fault, name] :
       {std::pair("write metrics.jsonl 1", "metrics.jsonl: write"),
        std::pair("fdatasync metrics.jsonl 1", "metrics.jsonl: fsync"),
        std::pair("write events.jsonl 1", "events.jsonl: write"),
        std::pair("write timeline.jsonl 1", "timeline.jsonl: write"),
        std::pair("write events.out.tfevents 2",
                  "events.out.tfevents.[^ ]*: write"),
        std::pair("fsync weights.safetensors 1",
                  "weights.safetensors: fsync")}) {
    SCOPED_TRACE(fault);
    fs::remove_all(Path("run"));
    fs::remove(Path("broken"));
    Break(fault);
    auto train = Train("run");
    EXPECT_EQ(train->Wait(kSoon), 1) << train->output();
    EXPECT_THAT(train->output(), ContainsRegex(absl::StrCat(
                                     "run/", name, ": Input/output error")));
    ExpectFired();
    EXPECT_EQ(Summary("run")["status"], "failed");
  }
}

TEST_F(BrokenDiskTest, ABestThatCannotBeWrittenIsNotTheResult) {
  Break("fsync best.safetensors 1");
  auto train = Train("run", {"--set", "evaluation.keep_best=true"});
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  ExpectFired();
  EXPECT_THAT(train->output(), HasSubstr("its weights could not be written"));
  EXPECT_THAT(train->output(), Not(HasSubstr("(best.safetensors")));
  EXPECT_FALSE(Summary("run")["best"].contains("weights_sha256"));
}

// The disk stands still while a checkpoint is written, and training goes on.
class StandingDiskTest
    : public BrokenDiskTest,
      public ::testing::WithParamInterface<
          std::tuple<const char*, const char*, std::vector<std::string>>> {};

// These weights do not change, so the first evaluation stays the best.
TEST_P(StandingDiskTest, TheBestWeightsWaitForTheDisk) {
  const auto& [name, file, strategy] = GetParam();
  // Step 16, the best, is and is not a step with a checkpoint of its own.
  for (const char* every : {"1", "3"}) {
    SCOPED_TRACE(every);
    fs::remove_all(Path("run"));
    std::vector<std::string> words = {
        "--set", absl::StrCat("checkpoint.every_steps=", every),
        "--set", "training.optimizer={sgd: {learning_rate: 1e-30}}",
        "--set", "training.epochs=3",
        "--set", "evaluation.keep_best=true"};
    words.insert(words.end(), strategy.begin(), strategy.end());
    Break(absl::StrCat("hold ", file, " 1"));
    auto train = Train("run", words);
    EXPECT_TRUE(train->WaitForOutput("epoch 3/3: test", kSoon))
        << train->output();
    ExpectFired();
    fs::remove(Path("broken"));
    EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
    EXPECT_THAT(train->output(), HasSubstr("the disk is too slow"));
    EXPECT_THAT(train->output(),
                ContainsRegex("best: loss .* after step 16: .*, sha256 "));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Writers, StandingDiskTest,
    ::testing::Values(
        std::tuple("Servers", "shard-", std::vector<std::string>{}),
        std::tuple("Residuals", "residual-",
                   std::vector<std::string>{
                       "--set", "strategy.parameter_server.wire=int8"}),
        std::tuple("Ranks", "shard-",
                   std::vector<std::string>{"--set",
                                            "strategy={all_reduce: {}}"})),
    [](const auto& info) { return std::get<0>(info.param); });

// A resumed run takes over the best checkpoint so far into its directory. A
// copy that may not be on the disk does not count.
TEST_F(BrokenDiskTest, ACopyOfTheBestCheckpointIsOnTheDiskOrNotThere) {
  auto train = Train("run", {"--set", "evaluation.keep_best=true"});
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  Break("fsync manifest.ckpt 1");
  auto resumed = Start({"tributary", "train", "--resume", "run", "--run-dir",
                        "resumed", "--set", "training.epochs=41"});
  EXPECT_NE(resumed->Wait(kSoon), 0) << resumed->output();
  EXPECT_THAT(resumed->output(),
              HasSubstr(".part/manifest.ckpt: fsync: Input/output error"));
  ExpectFired();
}

}  // namespace
}  // namespace tributary
