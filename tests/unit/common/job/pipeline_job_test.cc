// SPDX-License-Identifier: Apache-2.0
// strategy.pipeline_parallel in the job file, and how layers become stages.
#include <algorithm>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr char kTwoStages[] = "strategy.pipeline_parallel={stages: 2}";
constexpr char kTwoWorkers[] = "cluster.workers=2";

TEST(PipelineJobTest, MicroBatchesAreAsManyAsStagesAndTheScheduleIs1f1b) {
  const auto job =
      ParseJob(JobWith(0, ""), "job.yaml", {kTwoStages, kTwoWorkers});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->strategy().pipeline_parallel().micro_batches(), 2);
  EXPECT_THAT(JobToYaml(*job), HasSubstr("stages: 2, schedule: 1f1b"));
  const auto three =
      ParseJob(JobToYaml(*job), "job.yaml",
               {"strategy.pipeline_parallel.stages=3", "cluster.workers=3"});
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(three->strategy().pipeline_parallel().micro_batches(), 3);
  // The data axis is a parameter server's unless the job says otherwise.
  EXPECT_TRUE(job->strategy().has_parameter_server());
}

TEST(PipelineJobTest, BothSchedulesHaveTheirNames) {
  const auto gpipe = ParseJob(
      JobWith(9,
              "strategy:\n  pipeline_parallel: {stages: 2, micro_batches: 8, "
              "schedule: gpipe}\ncluster: {workers: 4}\ntraining:"),
      "job.yaml");
  ASSERT_TRUE(gpipe.ok()) << gpipe.status();
  EXPECT_EQ(gpipe->strategy().pipeline_parallel().schedule(),
            v1::PIPELINE_SCHEDULE_GPIPE);
  EXPECT_EQ(gpipe->strategy().pipeline_parallel().micro_batches(), 8);
  const auto again = ParseJob(JobToYaml(*gpipe), "job.yaml",
                              {"strategy.pipeline_parallel.schedule=1f1b"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->strategy().pipeline_parallel().schedule(),
            v1::PIPELINE_SCHEDULE_1F1B);
}

TEST(PipelineJobTest, StagesAndThreadsNameTheirBackend) {
  const auto stages = ParseJob(
      JobWith(0, ""), "job.yaml",
      {"strategy.pipeline_parallel={stages: 2, backend: nccl}", kTwoWorkers});
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_EQ(stages->strategy().pipeline_parallel().backend(),
            v1::COLLECTIVE_BACKEND_NCCL);
  const auto threads =
      ParseJob(JobWith(0, ""), "job.yaml",
               {"strategy={data_parallel: {backend: gloo}}", kTwoWorkers});
  ASSERT_TRUE(threads.ok()) << threads.status();
  EXPECT_EQ(threads->strategy().data_parallel().backend(),
            v1::COLLECTIVE_BACKEND_GLOO);
}

struct Spoiling {
  std::vector<std::string> overrides;
  const char* error;
};

TEST(PipelineJobTest, WhatDoesNotFitHasItsSentence) {
  const std::string bsp = "strategy.parameter_server.sync=";
  const std::vector<Spoiling> spoilings = {
      {{"strategy.pipeline_parallel={}", kTwoWorkers},
       "--set strategy.pipeline_parallel={}: stages is missing in "
       "strategy.pipeline_parallel"},
      {{"strategy.pipeline_parallel={stages: 0}", kTwoWorkers},
       "--set strategy.pipeline_parallel={stages: 0}: "
       "strategy.pipeline_parallel.stages must be at least 1 and at most 1024, "
       "got 0"},
      {{"strategy.pipeline_parallel={stages: 2, micro_batches: 0}",
        kTwoWorkers},
       "--set strategy.pipeline_parallel={stages: 2, micro_batches: 0}: "
       "strategy.pipeline_parallel.micro_batches must be at least 1 and at "
       "most 65536, got 0"},
      {{"strategy.pipeline_parallel={stages: 2, schedule: 2f2b}", kTwoWorkers},
       "--set strategy.pipeline_parallel={stages: 2, schedule: 2f2b}: "
       "strategy.pipeline_parallel.schedule wants 1f1b or gpipe, got "
       "\"2f2b\""},
      {{kTwoStages, "cluster.workers=3"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel.stages must divide the number of workers, "
       "3, got 2"},
      {{kTwoStages, "strategy.tensor_parallel=2", "cluster.workers=6"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel.stages times "
       "strategy.tensor_parallel.ranks must divide the number of workers, 6, "
       "got 2 times 2"},
      // Two workers make no whole pipeline, over which the batch would be cut.
      {{kTwoStages, "strategy.tensor_parallel=2", kTwoWorkers,
        "data.global_batch_size=8"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel.stages times "
       "strategy.tensor_parallel.ranks must divide the number of workers, 2, "
       "got 2 times 2"},
      {{kTwoStages},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel.stages must divide the number of workers, "
       "1, got 2"},
      {{"strategy.pipeline_parallel={stages: 4}", "cluster.workers=4"},
       "--set strategy.pipeline_parallel={stages: 4}: "
       "strategy.pipeline_parallel.stages must be at most the number of "
       "layers, 3, got 4"},
      {{"strategy.pipeline_parallel={stages: 2, micro_batches: 17}",
        kTwoWorkers},
       "--set strategy.pipeline_parallel={stages: 2, micro_batches: 17}: "
       "strategy.pipeline_parallel.micro_batches must be at most the samples "
       "of a pipeline's batch, 16, got 17"},
      // Two pipelines get 4 samples each.
      {{"strategy.pipeline_parallel={stages: 2, micro_batches: 5}",
        "cluster.workers=4", "data.global_batch_size=8"},
       "--set strategy.pipeline_parallel={stages: 2, micro_batches: 5}: "
       "strategy.pipeline_parallel.micro_batches must be at most the samples "
       "of a pipeline's batch, 4, got 5"},
      {{kTwoStages, kTwoWorkers, "cluster.on_worker_loss=shrink"},
       "--set cluster.on_worker_loss=shrink: cluster.on_worker_loss: shrink "
       "wants workers with whole models; the job has "
       "strategy.pipeline_parallel"},
      {{kTwoStages, kTwoWorkers, bsp + "{ssp: {staleness: 1}}"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel wants sync bsp, where the stages of a "
       "pipeline have the same weights; the job says ssp"},
      {{kTwoStages, kTwoWorkers, bsp + "async"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel wants sync bsp, where the stages of a "
       "pipeline have the same weights; the job says async"},
      {{kTwoStages, kTwoWorkers, bsp + "{local_sgd: {period: 2}}"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel wants sync bsp, where the stages of a "
       "pipeline have the same weights; the job says local_sgd"},
      {{kTwoStages, kTwoWorkers, bsp + "{bsp: {backup_workers: 1}}"},
       "--set strategy.pipeline_parallel={stages: 2}: "
       "strategy.pipeline_parallel wants every worker's gradient to count; the "
       "job has backup_workers: 1"},
  };
  for (const Spoiling& spoiling : spoilings) {
    const auto job = ParseJob(JobWith(0, ""), "job.yaml", spoiling.overrides);
    EXPECT_EQ(job.status().message(), spoiling.error);
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(PipelineJobTest, WhatJustFitsIsGood) {
  EXPECT_TRUE(ParseJob(JobWith(0, ""), "job.yaml",
                       {"strategy.pipeline_parallel={stages: 3, "
                        "micro_batches: 16}",
                        "cluster.workers=6"})
                  .ok());
  EXPECT_TRUE(ParseJob(JobWith(0, ""), "job.yaml",
                       {"strategy.pipeline_parallel={stages: 2, "
                        "micro_batches: 4}",
                        "cluster.workers=4", "data.global_batch_size=8"})
                  .ok());
}

}  // namespace
}  // namespace tributary
