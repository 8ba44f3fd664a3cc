// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/message_differencer.h>

#include "common/job/job_file.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kLanguageJob[] =
    "model: {gpt: {layers: 1, dim: 12, heads: 6, length: 4, vocabulary: 16}}\n"
    "data:\n"
    "  train: {synthetic: {kind: markov_text, rows: 100, length: 4}}\n"
    "  batch_size: 8\n"
    "training: {steps: 5, loss: cross_entropy, optimizer: adam}\n"
    "cluster: {workers: 12}\n"
    "strategy:\n"
    "  parameter_server\n";

std::string ErrorOf(const std::vector<std::string>& overrides) {
  const auto job = ParseJob(kLanguageJob, "job.yaml", overrides);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(job.status().message());
}

TEST(TensorParallelJobTest, ANumberAloneIsTheNumberOfRanks) {
  const auto job =
      ParseJob(JobWith(9,
                       "cluster: {workers: 4}\n"
                       "strategy: {parameter_server: {}, tensor_parallel: 2}\n"
                       "training:"),
               "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->strategy().tensor_parallel().ranks(), 2);
  EXPECT_EQ(job->strategy().tensor_parallel().backend(),
            v1::COLLECTIVE_BACKEND_AUTO);
  const auto again = ParseJob(JobToYaml(*job), "job.yaml");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*job, *again));
  const auto written_out =
      ParseJob(JobToYaml(*job), "job.yaml",
               {"strategy.tensor_parallel={ranks: 4, backend: gloo}"});
  ASSERT_TRUE(written_out.ok()) << written_out.status();
  EXPECT_EQ(written_out->strategy().tensor_parallel().ranks(), 4);
  EXPECT_EQ(written_out->strategy().tensor_parallel().backend(),
            v1::COLLECTIVE_BACKEND_GLOO);
}

TEST(TensorParallelJobTest, TheDataAxisIsAParameterServersByDefault) {
  const auto job = ParseJob(JobWith(9,
                                    "cluster: {workers: 2}\n"
                                    "strategy: {tensor_parallel: 2}\n"
                                    "training:"),
                            "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->strategy().parameter_server().sync().has_bsp());
}

TEST(TensorParallelJobTest, OneRankIsNoneAndFitsEverything) {
  const auto job = ParseJob(kLanguageJob, "job.yaml",
                            {"strategy.tensor_parallel=1", "cluster.workers=5",
                             "strategy.parameter_server.sync=async"});
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST(TensorParallelJobTest, WorkersMakeWholeGroups) {
  EXPECT_EQ(ErrorOf({"strategy.tensor_parallel=5"}),
            "--set strategy.tensor_parallel=5: "
            "strategy.tensor_parallel.ranks must divide the number of "
            "workers, 12, got 5");
}

TEST(TensorParallelJobTest, EveryRankHasAsManyHeads) {
  EXPECT_EQ(ErrorOf({"strategy.tensor_parallel=4"}),
            "job.yaml:1: model.sequential.2.residual.body.1.attention.heads "
            "must be a multiple of strategy.tensor_parallel.ranks, 4, got 6");
  EXPECT_TRUE(
      ParseJob(kLanguageJob, "job.yaml", {"strategy.tensor_parallel=3"}).ok());
}

TEST(TensorParallelJobTest, RanksAreACount) {
  EXPECT_EQ(ErrorOf({"strategy.tensor_parallel=0"}),
            "--set strategy.tensor_parallel=0: strategy.tensor_parallel.ranks "
            "must be at least 1 and at most 256, got 0");
  EXPECT_EQ(ErrorOf({"strategy.tensor_parallel=2.5"}),
            "--set strategy.tensor_parallel=2.5: "
            "strategy.tensor_parallel.ranks wants a whole number, got \"2.5\"");
  EXPECT_EQ(ErrorOf({"strategy.tensor_parallel=two"}),
            "--set strategy.tensor_parallel=two: unknown field \"two\" in "
            "strategy.tensor_parallel; strategy.tensor_parallel knows ranks, "
            "backend");
  EXPECT_EQ(ErrorOf({"strategy.tensor_parallel={backend: gloo}"}),
            "--set strategy.tensor_parallel={backend: gloo}: ranks is missing "
            "in strategy.tensor_parallel");
}

TEST(TensorParallelJobTest, AGroupSeesOneVersionOfTheWeights) {
  const std::string two = "strategy.tensor_parallel=2";
  for (const std::string sync : {"ssp", "async", "local_sgd: {period: 2}"}) {
    EXPECT_EQ(
        ErrorOf({two, "strategy.parameter_server.sync={" + sync +
                          (sync.back() == '}' ? "}" : ": {}}")}),
        "--set strategy.tensor_parallel=2: strategy.tensor_parallel wants sync "
        "bsp, where the workers of a group have the same weights; the job "
        "says " +
            sync.substr(0, sync.find(':')));
  }
  EXPECT_EQ(ErrorOf({two,
                     "strategy.parameter_server.sync={bsp: "
                     "{backup_workers: 1}}"}),
            "--set strategy.tensor_parallel=2: strategy.tensor_parallel wants "
            "every worker's gradient to count; the job has backup_workers: 1");
  EXPECT_EQ(ErrorOf({two, "cluster.on_worker_loss=shrink"}),
            "--set cluster.on_worker_loss=shrink: cluster.on_worker_loss: "
            "shrink wants workers with whole models; the job has "
            "strategy.tensor_parallel");
}

}  // namespace
}  // namespace tributary
