// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/model_declaration.h"

#include <gtest/gtest.h>

#include "common/base/limits.h"

namespace tributary {
namespace {

// 8 MiB of weights.
v1::DeclareModelRequest EightMebibytes() {
  v1::DeclareModelRequest model;
  v1::ParameterSpec* const spec = model.add_parameters();
  spec->set_name("w");
  spec->add_shape(1024);
  spec->add_shape(2048);
  return model;
}

uint64_t BucketBytes(std::vector<std::string> servers,
                     uint64_t bucket_bytes = 0) {
  v1::JobSpec job;
  auto* const spec = job.mutable_strategy()->mutable_parameter_server();
  if (bucket_bytes > 0) spec->set_bucket_bytes(bucket_bytes);
  const v1::Plan plan = PlanOf(EightMebibytes(), job, servers);
  EXPECT_EQ(plan.servers_size(), static_cast<int>(servers.size()));
  const bool links = plan.bucket_bytes() < 1 << 20;
  EXPECT_EQ(plan.unanswered_blocks(), links ? 2u : 0u);
  return plan.bucket_bytes();
}

TEST(ModelDeclarationTest, LinksGetSmallBlocksAndOneMachineLargeOnes) {
  // Half of the model on each server, in 32 blocks.
  EXPECT_EQ(BucketBytes({"10.0.0.1:7000", "10.0.0.2:7000"}), 256u << 10);
  EXPECT_EQ(BucketBytes({"127.0.0.1:7000", "127.0.0.1:7001"}), 4u << 20);
  EXPECT_EQ(BucketBytes({"localhost:7000", "[::1]:7001"}), 4u << 20);
  // One server elsewhere is a link.
  EXPECT_EQ(BucketBytes({"127.0.0.1:7000", "10.0.0.2:7000"}), 256u << 10);
}

TEST(ModelDeclarationTest, TheJobsBucketSizeCountsEverywhere) {
  EXPECT_EQ(BucketBytes({"10.0.0.1:7000"}, 512 << 10), 512u << 10);
  EXPECT_EQ(BucketBytes({"127.0.0.1:7000"}, 1 << 20), 1u << 20);
}

v1::JobSpec ProgramJob() {
  v1::JobSpec job;
  job.mutable_program();
  return job;
}

TEST(ModelDeclarationTest, TheJobsStepsAreThoseOfAProgramThatDeclaresNone) {
  v1::JobSpec job = ProgramJob();
  job.mutable_training()->set_steps(50);
  v1::DeclareModelRequest model;
  model.set_total_steps(kOpenEnd);
  EXPECT_TRUE(ResolveLength(job, &model).ok());
  EXPECT_EQ(model.total_steps(), 50);
  model.set_total_steps(60);
  EXPECT_EQ(ResolveLength(job, &model).message(),
            "the program takes 60 steps, but training.steps of the job is 50");
}

TEST(ModelDeclarationTest, AScheduleWithoutALengthWantsAKnownEnd) {
  v1::JobSpec job = ProgramJob();
  job.mutable_training()->mutable_learning_rate_schedule()->mutable_cosine();
  v1::DeclareModelRequest model;
  model.set_total_steps(kOpenEnd);
  EXPECT_EQ(ResolveLength(job, &model).message(),
            "training.learning_rate_schedule.cosine.t_max is missing: the "
            "schedule lasts as long as the job, and the program does not say "
            "how many steps it takes; set it, or training.steps");
  model.set_total_steps(100);
  EXPECT_TRUE(ResolveLength(job, &model).ok());
}

}  // namespace
}  // namespace tributary
