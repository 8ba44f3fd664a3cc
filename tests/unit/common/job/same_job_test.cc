// SPDX-License-Identifier: Apache-2.0
#include "common/job/same_job.h"

#include <gtest/gtest.h>

#include "common/job/job_file.h"

namespace tributary {
namespace {

v1::JobSpec Digits() {
  return ParseJob(
             "name: digits\n"
             "model: {sequential: [{linear: {in: 20, out: 1}}]}\n"
             "data:\n"
             "  train: {synthetic: {kind: linear, rows: 100}}\n"
             "  batch_size: 10\n"
             "training: {steps: 5, loss: mse, optimizer: {sgd: "
             "{learning_rate: 0.1}}}\n",
             "job.yaml")
      .value();
}

TEST(SameJobTest, AFieldThatAnOlderVersionDidNotKnowHasItsDefault) {
  const v1::JobSpec job = Digits();
  EXPECT_EQ(OtherJob(job, job), "");
  v1::JobSpec older = job;
  ASSERT_TRUE(older.cluster().has_max_restarts());
  older.mutable_cluster()->clear_max_restarts();
  older.mutable_checkpoint()->clear_keep();
  older.mutable_training()->clear_divergence();
  EXPECT_EQ(OtherJob(older, job), "");
  v1::JobSpec other = job;
  other.mutable_checkpoint()->set_keep(job.checkpoint().keep() + 1);
  EXPECT_NE(OtherJob(older, other), "") << "not the default";
}

TEST(SameJobTest, TheFirstDifferenceIsNamed) {
  v1::JobSpec other = Digits();
  other.mutable_training()->set_steps(7);
  EXPECT_EQ(OtherJob(Digits(), other), "training.steps: 5 -> 7");
}

}  // namespace
}  // namespace tributary
