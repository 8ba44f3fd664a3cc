// SPDX-License-Identifier: Apache-2.0
// Where `--resume` finds checkpoints, and which changes it reports.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/unique_fd.h"
#include "tests/integration/cli/resume_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// The folder also has the checkpoints of a run that continued from the first
// one.
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
  // Without a summary, the run looks as if it had been killed.
  fs::remove(Path("first/summary.json"));
  ASSERT_EQ(Run({"export", "first", "y.safetensors"}), 0) << output_;
  EXPECT_EQ(Read("y.safetensors"), Read("first/weights.safetensors"));
  Write("first/job.yaml", Read("first/job.yaml") + "# edited\n");
  ASSERT_EQ(Resume("first", "fourth"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("first has not come to its end; "));
  EXPECT_THAT(output_, HasSubstr("first/job.yaml does not count, because "));
}

// The checkpoints of the resumed run would replace later ones.
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
  // It has another checkpoint of the step that this run starts from.
  const std::vector<std::string> own = {"--set", "checkpoint.directory=own",
                                        "--set", "training.epochs=3"};
  EXPECT_EQ(Resume(newest, "fifth", own), 2);
  EXPECT_THAT(output_,
              HasSubstr("own/step-000000000016 is not the checkpoint " +
                        newest + ", which this run needs"));
  EXPECT_FALSE(fs::exists(Path("fifth")));
  ASSERT_TRUE(fs::exists(newest + "/manifest.ckpt"));
  for (const char* step : {"8", "12", "16"}) {
    FlipByte(
        Path(absl::StrCat("kept/step-", std::string(12 - strlen(step), '0'),
                          step, "/manifest.ckpt")));
  }
  EXPECT_EQ(Resume(early, "fourth"), 0) << output_;
  EXPECT_EQ(Samples("fourth"), 96);
}

// A group takes fields that it does not set from the job's optimizer, and keeps
// the zeros that it sets.
TEST_F(ResumeTest, ParameterGroupsGoOnAsTheyWere) {
  Write("job.yaml",
        absl::StrReplaceAll(
            kTwoEpochs,
            {{"optimizer: {sgd: {learning_rate: 0.01}}",
              "optimizer: {sgd: {learning_rate: 0.01, momentum: 0.9, "
              "weight_decay: 0.5}}, parameter_groups: [{parameters: "
              "[\"*.bias\"], optimizer: {sgd: {weight_decay: 0}}}]"}}));
  ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", "whole"}), 0) << output_;
  ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", "first", "--set",
                 "training.epochs=1"}),
            0)
      << output_;
  ASSERT_EQ(Resume("first", "second"), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("differs from the job")));
  EXPECT_EQ(Read("second/weights.safetensors"),
            Read("whole/weights.safetensors"));
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

TEST_F(ResumeTest, AnotherModelIsRefusedBeforeAnythingBegins) {
  Train(8, "first");
  for (const std::string model :
       {"model={mlp: {in: 20, hidden: [5], out: 1}}",
        "model={mlp: {in: 20, hidden: [5, 5], out: 1}}"}) {
    for (const bool dry : {true, false}) {
      std::vector<std::string> words = {"--set", model};
      if (dry) words.push_back("--dry-run");
      EXPECT_EQ(Resume("first", "second", words), 2) << output_;
      EXPECT_THAT(output_, HasSubstr("the checkpoint holds "));
    }
  }
  EXPECT_FALSE(fs::exists(Path("second")));
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

TEST_F(ResumeTest, RelativePathsStartFromTheCurrentDirectory) {
  Train(8, "first");
  EXPECT_EQ(Resume("first", "second", {"--set", "checkpoint.directory=one"}), 0)
      << output_;
  EXPECT_TRUE(fs::exists(Path("one")));
  EXPECT_EQ(Resume("first/checkpoints/step-000000000008", "third",
                   {"--set", "checkpoint.directory=two"}),
            0)
      << output_;
  EXPECT_TRUE(fs::exists(Path("two")));
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
