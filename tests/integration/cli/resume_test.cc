// SPDX-License-Identifier: Apache-2.0
// `--resume` with other workers, batches and options, and where it finds files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/unique_fd.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::Not;
using testing::RunningProcess;
namespace fs = std::filesystem;

// Eight steps an epoch.
constexpr char kTwoEpochs[] = R"(name: small
model: {sequential: [{linear: {in: 20, out: 1}}]}
data: {train: {synthetic: {kind: linear, rows: 64}}, batch_size: 8}
training: {epochs: 2, loss: mse, optimizer: {sgd: {learning_rate: 0.01}}}
cluster: {servers: 1, workers: 1}
)";

class ResumeTest : public testing::TemporaryFolderTest {
 protected:
  // Returns the exit code; the output is in output_.
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), testing::Program("tributary"));
    const auto process =
        RunningProcess::Start({.command = words, .folder = folder()});
    const int code = process->Wait(kSoon);
    output_ = process->output();
    return code;
  }
  // Trains the first steps; the run directory has the words that follow.
  void Train(int steps, const std::string& run) {
    Write("job.yaml", kTwoEpochs);
    ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", run, "--set",
                   "training.steps=" + std::to_string(steps)}),
              0)
        << output_;
  }
  // To the end of the second epoch, if the words say nothing else.
  int Resume(const std::string& from, const std::string& run,
             const std::vector<std::string>& words = {}) {
    std::vector<std::string> all = {
        "train", "--resume",         from, "--run-dir", run,
        "--set", "training.epochs=2"};
    all.insert(all.end(), words.begin(), words.end());
    return Run(all);
  }
  static void FlipByte(const std::string& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-100, std::ios::end);
    const char byte = static_cast<char>(stream.peek() ^ 4);
    stream.seekp(-100, std::ios::end);
    stream.put(byte);
  }
  int64_t Samples(const std::string& run) {
    int64_t samples = 0;
    std::istringstream lines(Read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      samples += json::parse(line)["samples"].get<int64_t>();
    }
    return samples;
  }
  json Summary(const std::string& run) {
    return json::parse(Read(run + "/summary.json"));
  }

  std::string output_;
};

TEST_F(ResumeTest, OtherWorkersAndBatchesTrainWhatIsLeftOnce) {
  Train(8, "first");
  // Four steps of 16 rows are left of the second epoch.
  EXPECT_EQ(Resume("first", "workers", {"--workers", "2"}), 0) << output_;
  EXPECT_EQ(Samples("workers"), 64);
  EXPECT_EQ(Summary("workers")["steps"], 12);
  EXPECT_THAT(output_, HasSubstr("from step 9 on, at the beginning of epoch 2, "
                                 "a step takes 16 rows instead of 8"));
}

TEST_F(ResumeTest, ABatchMayChangeWithinAnEpochAndAgain) {
  Train(4, "first");
  // 32 rows a step: the end of the first epoch, and half of the second.
  EXPECT_EQ(Resume("first", "second",
                   {"--set", "training.gradient_accumulation=4", "--set",
                    "training.steps=6"}),
            0)
      << output_;
  EXPECT_EQ(Samples("second"), 64);
  EXPECT_EQ(
      Resume("second", "third", {"--set", "training.gradient_accumulation=1"}),
      0)
      << output_;
  EXPECT_EQ(Samples("third"), 32);
  EXPECT_EQ(Summary("third")["steps"], 6 + 4);
}

TEST_F(ResumeTest, WhatCannotBeExactIsRefusedWithARemedy) {
  Train(3, "first");
  EXPECT_EQ(Resume("first", "refused", {"--workers", "2"}), 2);
  EXPECT_THAT(output_,
              HasSubstr("24 rows into epoch 1, which is not a multiple of "
                        "the global batch of 16 rows"));
  EXPECT_THAT(output_, HasSubstr("--set data.global_batch_size=8"));
  EXPECT_EQ(Resume("first", "refused", {"--set", "data.shuffle={seed: 5}"}), 2);
  EXPECT_THAT(output_, HasSubstr("keep the order"));
  EXPECT_FALSE(fs::exists(Path("refused")));
  EXPECT_EQ(Resume("first", "remedied",
                   {"--workers", "2", "--set", "data.global_batch_size=8"}),
            0)
      << output_;
  EXPECT_EQ(Samples("remedied"), 128 - 24);
  EXPECT_EQ(
      Resume("first", "more-rows", {"--set", "data.train.synthetic.rows=80"}),
      1);
  EXPECT_THAT(output_, HasSubstr("which has 64 rows; there are 80 rows now"));
}

TEST_F(ResumeTest, ARunThatIsOverHasNothingLeftForOtherWorkers) {
  Train(16, "first");
  EXPECT_EQ(Resume("first", "more", {"--workers", "3"}), 0) << output_;
  EXPECT_EQ(Summary("more")["steps"], 16);
  EXPECT_EQ(
      Resume("first", "less", {"--workers", "3", "--set", "training.epochs=1"}),
      2);
  EXPECT_THAT(output_, HasSubstr("the job ends after step 8, the checkpoint is "
                                 "of step 16"));
}

// It does no step, and must not need the run before it all the same.
TEST_F(ResumeTest, ARunWithNothingLeftHasACheckpointToGoOnFrom) {
  Train(16, "first");
  ASSERT_EQ(Resume("first", "second"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("the checkpoint is of the last step, 16, so "
                                 "nothing is left to train"));
  const json summary = Summary("second");
  EXPECT_EQ(summary["status"], "done");
  EXPECT_EQ(summary["epochs"], 2);
  EXPECT_TRUE(summary["final_loss"].is_null());
  EXPECT_EQ(summary["weights_sha256"], Summary("first")["weights_sha256"]);
  fs::remove_all(Path("first"));
  EXPECT_EQ(Run({"checkpoint", "verify", "second"}), 0) << output_;
  EXPECT_EQ(Run({"export", "second", "x.safetensors"}), 0) << output_;
  ASSERT_EQ(Run({"train", "--resume", "second", "--run-dir", "third", "--set",
                 "training.epochs=3"}),
            0)
      << output_;
  EXPECT_EQ(Summary("third")["steps"], 24);
}

// Beside its own checkpoints there are those of a run that went on from it.
TEST_F(ResumeTest, ARunIsNotTakenForOneThatWentOnFromIt) {
  Write("job.yaml", kTwoEpochs);
  ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", "first", "--set",
                 "checkpoint.directory=kept", "--set", "training.epochs=1"}),
            0)
      << output_;
  ASSERT_EQ(Resume("first", "second"), 0) << output_;
  ASSERT_EQ(Run({"export", "first", "x.safetensors"}), 0) << output_;
  EXPECT_EQ(Read("x.safetensors"), Read("first/weights.safetensors"));
  ASSERT_EQ(Resume("first", "third"), 0);
  EXPECT_THAT(output_, HasSubstr("first ended after step 8; "));
  EXPECT_THAT(output_, HasSubstr("is of a run that went on from it"));
  ASSERT_EQ(Run({"checkpoint", "newest", "second"}), 0);
  EXPECT_THAT(output_, Not(HasSubstr("went on from it")));
}

// Its checkpoints would take the place of later ones.
TEST_F(ResumeTest, ASharedDirectoryIsGoneOnFromAtItsNewestIntactCheckpoint) {
  Write("job.yaml", kTwoEpochs);
  ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", "first", "--set",
                 "checkpoint={directory: kept, every_steps: 4, keep: 9}"}),
            0)
      << output_;
  const std::string newest = Path("kept/step-000000000016");
  const std::string early = "kept/step-000000000004";
  EXPECT_EQ(Resume(early, "second"), 2);
  EXPECT_THAT(output_,
              HasSubstr("holds a checkpoint of step 16, which a run from step "
                        "4 on would replace: go on from that one with "
                        "--resume " +
                        newest));
  EXPECT_FALSE(fs::exists(Path("second")));
  EXPECT_EQ(Resume(early, "third", {"--set", "checkpoint.directory=own"}), 0)
      << output_;
  EXPECT_TRUE(fs::exists(Path("own/step-000000000016")));
  ASSERT_TRUE(fs::exists(newest + "/manifest.ckpt"));
  for (const char* step : {"8", "12", "16"}) {
    FlipByte(
        Path(absl::StrCat("kept/step-", std::string(12 - strlen(step), '0'),
                          step, "/manifest.ckpt")));
  }
  EXPECT_EQ(Resume(early, "fourth"), 0) << output_;
  EXPECT_EQ(Samples("fourth"), 96);
}

TEST_F(ResumeTest, AnEditedJobOfARunCountsWhereverItsCheckpointsAre) {
  Write("job.yaml", kTwoEpochs);
  for (const std::string place : {"null", "kept"}) {
    const std::string run = "run" + place;
    ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", run, "--set",
                   "checkpoint.directory=" + place}),
              0)
        << output_;
    const std::string job = Read(run + "/job.yaml");
    Write(run + "/job.yaml",
          absl::StrReplaceAll(
              job, {{"learning_rate: 0.01", "learning_rate: 0.02"}}));
    EXPECT_EQ(Resume(run, run + "-more"), 0);
    EXPECT_THAT(output_, HasSubstr("differs from the job of the checkpoint, "
                                   "and counts"));
    EXPECT_THAT(output_, HasSubstr("learning_rate: 0.01 -> 0.02"));
  }
}

TEST_F(ResumeTest, ItTellsThatTheRunStillTrains) {
  Train(8, "first");
  const UniqueFd lock(
      open(Path("first/coordinator.lock").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  EXPECT_EQ(Resume("first", "second"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("first still trains; this is a second run, "
                                 "from step 8 on"));
}

TEST_F(ResumeTest, ItTellsWhichSettingsHaveChanged) {
  Train(8, "first");
  ASSERT_EQ(Resume("first", "same"), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("changed since the checkpoint")));
  ASSERT_EQ(Resume("first", "second",
                   {"--set", "training.optimizer.sgd.learning_rate=0.02",
                    "--set", "data.train.synthetic.normalize=standardize"}),
            0)
      << output_;
  EXPECT_THAT(output_,
              HasSubstr("changed since the checkpoint: "
                        "data.train.synthetic.normalize.standardize: none -> "
                        "true; training.optimizer.sgd.learning_rate: 0.01 -> "
                        "0.02"));
}

// Its only checkpoint is of the run before, whose job was another.
TEST_F(ResumeTest, ARunWithoutAStepOfItsOwnKeepsTheChangesOfItsJob) {
  Train(16, "first");
  ASSERT_EQ(Resume("first", "second",
                   {"--set", "training.optimizer.sgd.learning_rate=0.02"}),
            0)
      << output_;
  ASSERT_EQ(Run({"train", "--resume", "second", "--dry-run"}), 0);
  EXPECT_THAT(output_, HasSubstr("learning_rate: 0.02"));
  EXPECT_THAT(output_, HasSubstr("second/job.yaml differs from the job of the "
                                 "checkpoint, and counts"));
  ASSERT_EQ(Run({"train", "--resume", "first", "--dry-run"}), 0);
  EXPECT_THAT(output_, HasSubstr("learning_rate: 0.01"));
  EXPECT_THAT(output_, Not(HasSubstr("differs")));
}

TEST_F(ResumeTest, ARefusedChangeIsNotAdvised) {
  Train(3, "first");
  EXPECT_EQ(
      Resume("first", "refused", {"--set", "data.train.synthetic.rows=80"}), 1);
  EXPECT_THAT(output_, HasSubstr("which has 64 rows; there are 80 rows now"));
  EXPECT_THAT(output_, Not(HasSubstr("continue with:")));
  EXPECT_FALSE(Summary("refused").contains("resume_command"));
}

TEST_F(ResumeTest, TheLineThatContinuesARunKeepsItsOptions) {
  Train(8, "first");
  EXPECT_EQ(Resume("first", "failed",
                   {"--set", "training.optimizer.sgd.learning_rate=1e30",
                    "--workers", "2", "--log-format", "json"}),
            1)
      << output_;
  EXPECT_THAT(output_, HasSubstr(" --set training.epochs=2 --set "
                                 "training.optimizer.sgd.learning_rate=1e30 "
                                 "--workers 2 --log-format json\n"));
}

TEST_F(ResumeTest, AnErrorInTheJobNamesTheFileOfTheRun) {
  Train(8, "run");
  const auto resume = [&] {
    EXPECT_EQ(Run({"train", "--resume", "run", "--set",
                   "model.sequential.0.linear.out=33"}),
              2);
    return output_;
  };
  EXPECT_THAT(resume(), HasSubstr("tributary: run/job.yaml:"));
  Write("run/job.yaml", "another: job\n");
  EXPECT_THAT(resume(), HasSubstr("tributary: the job of step-"));
}

// One changed number is detected; equal rows in another file are not.
TEST_F(ResumeTest, ItTellsThatTheDataHaveChanged) {
  std::string rows = "a,b\n", changed = "a,b\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&rows, i % 7, ",", i % 5, "\n");
    absl::StrAppend(&changed, i == 20 ? 3.5 : i % 7, ",", i % 5, "\n");
  }
  Write("rows.csv", rows);
  Write("moved.csv", rows);
  Write("changed.csv", changed);
  Write("job.yaml", R"(name: rows
model: {sequential: [linear: {in: 1, out: 1}]}
data:
  train: {csv: {path: rows.csv, header: true, columns: {label: b, numeric: [a]}}}
  batch_size: 10
training: {epochs: 2, loss: mse, optimizer: {sgd: {learning_rate: 0.01}}}
checkpoint: {every_steps: 8}
cluster: {servers: 1, workers: 1}
)");
  EXPECT_EQ(Run({"train", "job.yaml", "--run-dir", "half", "--set",
                 "training.epochs=1"}),
            0)
      << output_;
  EXPECT_EQ(Run({"train", "job.yaml", "--run-dir", "whole"}), 0) << output_;
  const auto resume = [&](const std::string& run) {
    EXPECT_EQ(Resume("half", run,
                     {"--set", "data.train.csv.path=" + Path(run + ".csv")}),
              0)
        << output_;
    return output_;
  };
  constexpr char kTold[] = "the training data are not those of the checkpoint";
  EXPECT_THAT(resume("moved"), Not(HasSubstr(kTold)));
  EXPECT_EQ(Summary("moved")["weights_sha256"],
            Summary("whole")["weights_sha256"]);
  EXPECT_THAT(resume("changed"), HasSubstr(kTold));
}

TEST_F(ResumeTest, ItTellsThatValidationRowsMayHaveTrained) {
  Train(8, "first");
  constexpr char kTold[] = "the checkpoint may have been trained on some";
  EXPECT_EQ(Resume("first", "fraction", {"--set", "data.validation=0.25"}), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr(kTold));
  ASSERT_EQ(Resume("fraction", "same", {"--set", "training.epochs=3"}), 0)
      << output_;
  EXPECT_THAT(output_, Not(HasSubstr(kTold)));
  ASSERT_EQ(
      Resume("fraction", "shuffled",
             {"--set", "training.epochs=3", "--set", "data.shuffle.seed=5"}),
      0)
      << output_;
  EXPECT_THAT(output_, HasSubstr(kTold));
}

TEST_F(ResumeTest, TheFirstLossOfTheJobBeforeTellsWhetherItDiverges) {
  Train(3, "first");
  EXPECT_EQ(Resume("first", "second",
                   {"--set", "training.optimizer.sgd.learning_rate=0.5"}),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("training diverges: the mean loss of the last "
                                 "10 steps"));
  EXPECT_THAT(output_, HasSubstr(", that of step 1 was "));
}

TEST_F(ResumeTest, CheckpointsAreFoundWhereTheRunsJobPutThem) {
  Write("job.yaml", kTwoEpochs);
  ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", "first", "--set",
                 "checkpoint.directory=" + Path("elsewhere")}),
            0)
      << output_;
  EXPECT_FALSE(fs::exists(Path("first/checkpoints")));
  EXPECT_EQ(Run({"checkpoint", "list", "first"}), 0);
  EXPECT_THAT(output_, HasSubstr("      16  "));
  EXPECT_EQ(Run({"checkpoint", "verify", "first"}), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("no complete checkpoint")));
  EXPECT_EQ(Run({"export", "first", "out.safetensors"}), 0) << output_;
  EXPECT_EQ(Resume("first", "more", {"--set", "training.epochs=3"}), 0)
      << output_;
  EXPECT_EQ(Samples("more"), 64);
}

}  // namespace
}  // namespace tributary
