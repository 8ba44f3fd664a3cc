// SPDX-License-Identifier: Apache-2.0
// Promise 1 of docs/consistency.md over real gRPC: the weights after a step do
// not depend on timing, arrival order, number of servers or repeated messages.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "common/plan/plan_codec.h"
#include "common/wire/header_checksum.h"
#include "kernels/bfloat16_math.h"
#include "tests/testing/cluster.h"
#include "tests/testing/ready_channel.h"
#include "tributary/v1/parameter_service.grpc.pb.h"
#include "worker/rank/client/message_delay.h"

namespace tributary {
namespace {

using testing::Cluster;
using testing::TrainToy;

struct Case {
  std::string name;
  OptimizerOptions optimizer;
  double clip_norm;
  v1::WireFormat wire = v1::WIRE_FORMAT_FLOAT32;
  v1::WireFormat weights_wire = v1::WIRE_FORMAT_FLOAT32;
  bool error_feedback = false;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

Cluster::Options MakeOptions(const Case& c, int servers, int workers) {
  Cluster::Options options;
  options.parameters = {
      {"0.weight", {64, 70}},
      {"0.bias", {70}},
      {"2.weight", {70, 33}},
      {"2.bias", {33}},
      {.name = "3.running_mean", .shape = {33}, .running_momentum = 0.1}};
  options.servers = servers;
  options.workers = workers;
  options.optimizer = c.optimizer;
  options.clip_norm = c.clip_norm;
  options.wire = c.wire;
  options.weights_wire = c.weights_wire;
  options.error_feedback = c.error_feedback;
  return options;
}

uint64_t UnevenSamples(uint32_t rank, int64_t step) {
  return (rank + 2 * static_cast<uint64_t>(step)) % 5;  // 0 for some steps
}

class BitIdentityTest : public ::testing::TestWithParam<Case> {};

TEST_P(BitIdentityTest, WeightsAreTheSameBitsForAllServersAndDelays) {
  constexpr int kWorkers = 3;
  constexpr int64_t kSteps = 6;
  const auto expected =
      TrainToy(MakeOptions(GetParam(), 1, kWorkers), kSteps, UnevenSamples);
  for (float w : expected[0]) ASSERT_TRUE(std::isfinite(w));
  for (int servers : {1, 2, 3}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const auto got = TrainToy(MakeOptions(GetParam(), servers, kWorkers),
                                kSteps, UnevenSamples, [seed](uint32_t rank) {
                                  return MakeMessageDelay(3, seed * 100 + rank);
                                });
      EXPECT_EQ(got, expected) << servers << " servers, seed " << seed;
    }
  }
}

TEST_P(BitIdentityTest, WeightsAreTheSameBitsThroughSharedMemory) {
  constexpr int kWorkers = 3;
  constexpr int64_t kSteps = 6;
  const auto expected =
      TrainToy(MakeOptions(GetParam(), 1, kWorkers), kSteps, UnevenSamples);
  for (int servers : {1, 2, 3}) {
    Cluster::Options options = MakeOptions(GetParam(), servers, kWorkers);
    options.shares_memory = true;
    EXPECT_EQ(TrainToy(options, kSteps, UnevenSamples), expected)
        << servers << " servers";
  }
}

OptimizerOptions Make(const char* kind) {
  OptimizerOptions options;
  options.kind = kind;
  options.learning_rate = 0.05;
  options.weight_decay = 0.01;
  if (options.kind == "sgd") options.momentum = 0.9;
  return options;
}

Case Compressed(const char* name, const char* kind, v1::WireFormat wire,
                double clip_norm = 0) {
  return {name,
          Make(kind),
          clip_norm,
          wire,
          v1::WIRE_FORMAT_FLOAT32,
          /*error_feedback=*/true};
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, BitIdentityTest,
    ::testing::Values(
        Case{"momentum", Make("sgd"), 0}, Case{"adam", Make("adam"), 0},
        Case{"adagrad", Make("adagrad"), 0}, Case{"lion", Make("lion"), 0},
        Case{"adafactor", Make("adafactor"), 0},
        Case{"adafactor_clipped", Make("adafactor"), 0.5},
        Case{"adamw_clipped", Make("adamw"), 0.5},
        Case{"lamb", Make("lamb"), 0}, Case{"lamb_clipped", Make("lamb"), 0.5},
        Case{"bfloat16", Make("adam"), 0, v1::WIRE_FORMAT_BFLOAT16},
        Case{"bfloat16_both_ways", Make("sgd"), 0, v1::WIRE_FORMAT_BFLOAT16,
             v1::WIRE_FORMAT_BFLOAT16},
        Case{"float16_clipped", Make("adam"), 0.5, v1::WIRE_FORMAT_FLOAT16},
        Case{"int8", Make("adam"), 0, v1::WIRE_FORMAT_INT8},
        Compressed("int8_with_feedback", "adam", v1::WIRE_FORMAT_INT8),
        Compressed("top_k_with_feedback", "sgd", v1::WIRE_FORMAT_TOP_K),
        Compressed("one_bit_with_feedback", "lamb", v1::WIRE_FORMAT_ONE_BIT),
        Compressed("one_bit_clipped", "adafactor", v1::WIRE_FORMAT_ONE_BIT,
                   0.5)),
    [](const auto& info) { return info.param.name; });

// The server keeps float32; workers compute with weights rounded by the format.
TEST(WeightsWireTest, WorkersGetRoundedWeightsAndTheServerKeepsItsOwn) {
  Cluster::Options options;
  options.parameters = {
      {"w", {40, 100}},
      {.name = "running_mean", .shape = {9}, .running_momentum = 0.1}};
  options.optimizer.learning_rate = 0.05;
  options.weights_wire = v1::WIRE_FORMAT_BFLOAT16;
  Cluster cluster(options);
  const auto rounded = TrainToy(cluster, 3, UnevenSamples);
  const auto stub = v1::ParameterService::NewStub(
      testing::ReadyChannel(cluster.plan().servers(0)));
  v1::PullRequest request;
  request.mutable_address()->set_job_id(cluster.plan().job_id());
  request.mutable_address()->set_plan_epoch(cluster.plan().epoch());
  request.set_unrounded(true);
  SignHeader(&request);
  grpc::ClientContext context;
  v1::PullResponse response;
  ASSERT_TRUE(stub->Pull(&context, request, &response).ok());
  const PartitionPlan plan = MakePartitionPlan(cluster.plan()).value();
  const Block& block = plan.blocks(0)[0];
  ASSERT_EQ(response.payload().size(), static_cast<size_t>(block.bytes()));
  ASSERT_EQ(block.weights_bytes(), 4000 * 2 + 9 * 4);
  std::vector<std::vector<float>> kept = rounded;
  PartitionPlan::Scatter(
      block, reinterpret_cast<const float*>(response.payload().data()),
      {kept[0].data(), kept[1].data()});
  EXPECT_NE(kept[0], rounded[0]);
  for (float& weight : kept[0]) weight = RoundToBfloat16(weight);
  EXPECT_EQ(kept, rounded) << "running averages are not rounded";
}

// A counter: with rate 1 and gradient -1, every weight counts the steps.
TEST(SumOfOnesTest, EveryStepCountsOnceThoughEveryMessageIsRepeated) {
  Cluster::Options options;
  options.parameters = {{"w", {5000}}};
  options.servers = 2;
  options.workers = 2;
  options.optimizer.learning_rate = 1;
  Cluster cluster(options);
  std::vector<float> weights(5000, 0.0f), other(5000, 0.0f);
  const std::vector<float> minus_one(5000, -1.0f);
  const std::vector<const float*> gradients = {minus_one.data()};
  const std::vector<float*> first = {weights.data()}, second = {other.data()};
  const std::vector<const float*> start = {weights.data()};
  auto a = cluster.Connect(0), b = cluster.Connect(1),
       again = cluster.Connect(1);
  ASSERT_TRUE(a->Initialize(start).ok());
  for (int64_t step = 0; step < 10; ++step) {
    for (ParameterClient* client : {a.get(), b.get(), again.get()}) {
      client->BeginStep(step, 1, gradients, client == a.get() ? first : second);
      for (int s = 0; s < 2; ++s) {
        for (const Block& block : client->partition().blocks(s)) {
          client->PushPull(block);
        }
      }
    }
    for (ParameterClient* client : {a.get(), b.get(), again.get()}) {
      const absl::Status status = client->FinishStep();
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  EXPECT_EQ(weights, std::vector<float>(5000, 10.0f));
  EXPECT_EQ(other, weights);
  EXPECT_GT(cluster.server(0).GetStatus().duplicates(), 0u);
}

TEST(WaitingTest, AStepThatNobodyCompletesEndsWithTheMissingRank) {
  Cluster::Options options;
  options.parameters = {{"w", {10}}};
  options.workers = 2;
  Cluster cluster(options);
  auto client = cluster.Connect(0, nullptr, absl::Milliseconds(300));
  testing::ToyModel model(options.parameters);
  const auto gradients = model.Gradients();
  ASSERT_TRUE(client->Initialize(model.ConstWeights()).ok());
  client->BeginStep(0, 1, gradients, model.Weights());
  client->PushPull(client->partition().blocks(0)[0]);
  const absl::Status status = client->FinishStep();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_NE(status.message().find("waits for rank 1"), absl::string_view::npos)
      << status;
}

TEST(WaitingTest, CancelEndsAStepAtOnce) {
  Cluster::Options options;
  options.parameters = {{"w", {10}}};
  options.workers = 2;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  testing::ToyModel model(options.parameters);
  const auto gradients = model.Gradients();
  ASSERT_TRUE(client->Initialize(model.ConstWeights()).ok());
  client->BeginStep(0, 1, gradients, model.Weights());
  client->PushPull(client->partition().blocks(0)[0]);
  client->Cancel("the job has failed");
  const absl::Status status = client->FinishStep();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(status.message(), "the job has failed");
}

}  // namespace
}  // namespace tributary
