// SPDX-License-Identifier: Apache-2.0
#include "cli/run/check_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/job/job_file.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

v1::JobSpec JobWith(const std::string& strategy, const std::string& optimizer,
                    const std::string& training = "") {
  const auto job = ParseJob(
      "model: {sequential: [{linear: {in: 16, out: 1}}]}\n"
      "data:\n  train: {synthetic: {kind: mlp_teacher, rows: 8}}\n"
      "  batch_size: 2\n"
      "training: {steps: 1, loss: mse, optimizer: " +
          optimizer + training + "}\nstrategy: " + strategy +
          "\ncluster: {workers: 3}\n",
      "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
  return job.value_or(v1::JobSpec());
}

// With a tensor of 256 x 1024 weights: 1 MiB.
uint64_t Least(const v1::JobSpec& job) {
  return LeastMemory(job, {.parameters = {256 * 1024}});
}

// Servers hold the weights twice, and states; workers hold weights, gradients.
TEST(CheckMemoryTest, WeightsGradientsAndStatesAreCounted) {
  const std::string adam = "{adam: {learning_rate: 0.1}}";
  EXPECT_EQ(Least(JobWith("parameter_server", "{sgd: {learning_rate: 1}}")),
            (2 + 3 * 2) * kMiB);
  EXPECT_EQ(Least(JobWith("parameter_server", adam)), (2 + 2 + 3 * 2) * kMiB);
  EXPECT_EQ(Least(JobWith("{parameter_server: {sync: {bsp: {delay: 1}}}}",
                          "{sgd: {learning_rate: 1}}")),
            (3 + 3 * 5) * kMiB)
      << "late weights travel between arrays of their own";
  EXPECT_EQ(Least(JobWith("all_reduce", adam)), (3 * (2 + 2)) * kMiB);
  EXPECT_EQ(Least(JobWith("{all_reduce: {sharded: true}}", adam)),
            (3 * 2 + 2) * kMiB);
  EXPECT_EQ(Least(JobWith("data_parallel", adam)), (3 * 2 + 2) * kMiB);
  EXPECT_EQ(Least(JobWith("parameter_server", adam,
                          ", parameter_groups: [{parameters: '*', frozen: "
                          "true}]")),
            (2 + 3 * 2) * kMiB)
      << "frozen weights have no states";
}

// Counts the gradients, and the gradient of the largest tensor twice.
TEST(CheckMemoryTest, ProgramsHaveTheirWeightsAlready) {
  const v1::JobSpec job =
      JobWith("parameter_server", "{sgd: {learning_rate: 1}}");
  MemoryNeed need{.parameters = {3 * 256 * 1024, 256 * 1024}, .programs = true};
  EXPECT_EQ(LeastMemory(job, need), (2 * 4 + 3 * (4 + 3)) * kMiB);
  need.on_accelerators = true;
  EXPECT_EQ(LeastMemory(job, need), 2 * 4 * kMiB);
}

TEST(CheckMemoryTest, ARefusalHasBothFigures) {
  const v1::JobSpec job =
      JobWith("parameter_server", "{sgd: {learning_rate: 1}}");
  const MemoryNeed need{.parameters = {256 * 1024}};
  EXPECT_TRUE(CheckMemory(job, need, AvailableMemory{8 * kMiB, "x"}).ok());
  EXPECT_TRUE(CheckMemory(job, need, std::nullopt).ok());
  const absl::Status status =
      CheckMemory(job, need, AvailableMemory{8 * kMiB - 1, "memory.max of /g"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("needs at least 8.0 MiB of memory for weights, "
                "gradients and the optimizer's state in 1 server and 3 "
                "workers, but this machine has 8.0 MiB left (memory.max "
                "of /g); use fewer workers"));
}

TEST(CheckMemoryTest, ASmallModelFits) {
  EXPECT_TRUE(CheckMemoryOfModel(
                  JobWith("parameter_server", "{sgd: {learning_rate: 1}}"))
                  .ok());
}

TEST(CheckMemoryTest, AModelOfATebibyteDoesNot) {
  v1::JobSpec job = JobWith("parameter_server", "{sgd: {learning_rate: 1}}");
  const absl::Status status =
      CheckMemoryOfProgram(job, {int64_t{1} << 38, 1 << 20});
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs at least "))
      << "unless this machine has 8 TiB";
}

}  // namespace
}  // namespace tributary
