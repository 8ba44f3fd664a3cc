// SPDX-License-Identifier: Apache-2.0
// `--resume` with other workers, batches and options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/cli/resume_fixture.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

TEST_F(ResumeTest, OtherWorkersAndBatchesTrainWhatIsLeftOnce) {
  Train(8, "first");
  // Four steps of 16 rows remain in the second epoch.
  EXPECT_EQ(Resume("first", "workers", {"--workers", "2"}), 0) << output_;
  EXPECT_EQ(Samples("workers"), 64);
  EXPECT_EQ(Summary("workers")["steps"], 12);
  EXPECT_THAT(output_, HasSubstr("from step 9 on, at the beginning of epoch 2, "
                                 "a step takes 16 rows instead of 8"));
}

TEST_F(ResumeTest, ABatchMayChangeWithinAnEpochAndAgain) {
  Train(4, "first");
  // With 32 rows a step: the rest of the first epoch, and half of the second.
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
  // Nine workers cannot share eight rows.
  EXPECT_EQ(Resume("first", "refused", {"--workers", "9"}), 2);
  EXPECT_THAT(output_, HasSubstr("continue with --workers 8 --set "
                                 "data.global_batch_size=8, or take"));
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

// The second run takes no step, but must not need the first run's files.
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

// The only checkpoint of the second run is the first run's, with another job.
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
  // The run's own job.yaml has the settings, beside a copy of the checkpoint.
  EXPECT_THAT(output_, HasSubstr("continue with: tributary train --resume "
                                 "failed --log-format json\n"));
  EXPECT_EQ(Run({"train", "--resume", "failed", "--dry-run"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("learning_rate: 1e+30"));
  EXPECT_THAT(output_, HasSubstr("epochs: 2"));
  EXPECT_THAT(output_, HasSubstr("workers: 2"));
  fs::rename(Path("failed"), Path("moved"));
  EXPECT_EQ(Run({"why", "moved"}), 1);
  EXPECT_THAT(output_, HasSubstr("continue with: tributary train --resume " +
                                 fs::canonical(Path("moved")).string() +
                                 " --log-format json\n"));
  fs::remove_all(Path("moved/checkpoints"));
  EXPECT_EQ(Run({"why", "moved"}), 1);
  EXPECT_THAT(output_, Not(HasSubstr("continue with")));
}

TEST_F(ResumeTest, ARunDirectoryIsNotThatOfTheResumedRun) {
  Train(8, "first");
  for (const char* from : {"first", "first/checkpoints/step-000000000008"}) {
    EXPECT_EQ(Resume(from, "first/"), 2);
    EXPECT_THAT(output_,
                HasSubstr("run directory first/ is the run that is resumed; "
                          "leave out --run-dir"));
  }
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

}  // namespace
}  // namespace tributary
