// SPDX-License-Identifier: Apache-2.0
#include "common/cost/predict_step.h"

#include <cmath>
#include <string>

#include "common/cost/link.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/layers/simple_model.h"

namespace tributary {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr double kNear = 1e-9;

Prediction Predict(const CostInputs& inputs) {
  const absl::StatusOr<Prediction> prediction = PredictStep(inputs);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  if (!prediction.ok()) return {};
  // The parts add up to the whole step.
  EXPECT_NEAR(prediction->compute_seconds + prediction->exposed_seconds +
                  prediction->optimizer_seconds + prediction->waiting_seconds,
              prediction->step_seconds, kNear);
  return *prediction;
}

TEST(LinkTest, ServesOneAfterTheOtherAtItsRate) {
  Link link(10);
  EXPECT_EQ(link.Serve(1, 20), 3);
  EXPECT_EQ(link.Serve(2, 20), 5);   // behind the first
  EXPECT_EQ(link.Serve(9, 10), 10);  // idle before
}

TEST(LinkTest, ATokenBucketLetsABurstThroughAfterAPause) {
  Link link(10, /*burst_bytes=*/100);
  EXPECT_EQ(link.Serve(0, 100), 10);  // the bucket is empty at first
  EXPECT_EQ(link.Serve(10, 10), 11);
  EXPECT_EQ(link.Serve(100, 150), 105);  // full after 10 s
  EXPECT_EQ(link.Serve(105, 10), 106);   // and empty again
}

// 3 FLOPs forward and 6 backward for each of 10 samples at 10 a second, then
// 3,000 elements whose update reads gradient twice, weight and two states and
// writes three: 32 bytes each at 96,000 a second.
TEST(PredictStepTest, OneWorkerComputesAndUpdates) {
  const ModelCosts model = SimpleModel({1000, 1000, 1000});
  CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 1);
  inputs.global_rows = 10;
  inputs.optimizer_states = 2;
  inputs.compute.forward_flops = inputs.compute.backward_flops = 10;
  inputs.compute.memory_bandwidth = 96'000;
  const Prediction p = Predict(inputs);
  EXPECT_DOUBLE_EQ(p.compute_seconds, 9);
  EXPECT_DOUBLE_EQ(p.optimizer_seconds, 1);
  EXPECT_DOUBLE_EQ(p.step_seconds, 10);
  EXPECT_EQ(p.exposed_seconds, 0);
  EXPECT_EQ(p.waiting_seconds, 0);
  EXPECT_EQ(p.bytes_sent_per_rank, 0);
  EXPECT_EQ(p.bytes_per_step, 0);
}

// 4 MB in one block: two of them into the server at 1 MB/s, two out again.
TEST(PredictStepTest, AServersLinkCarriesTheModelOnceForEachWorkerEachWay) {
  const ModelCosts model = SimpleModel({1'000'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  inputs.cluster.bandwidth = 1e6;
  inputs.cluster.latency = 0.25;
  const Prediction p = Predict(inputs);
  EXPECT_DOUBLE_EQ(p.step_seconds, 16.5);
  EXPECT_DOUBLE_EQ(p.exposed_seconds, 16.5);
  EXPECT_EQ(p.bytes_sent_per_rank, 4e6);
  EXPECT_EQ(p.bytes_per_step, 16e6);
}

// The same exchange, 16.5 s, beside 3 or 30 s of computation.
TEST(PredictStepTest, ADelayHidesTheExchangeBehindTheNextStep) {
  const ModelCosts model = SimpleModel({1'000'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  inputs.cluster.bandwidth = 1e6;
  inputs.cluster.latency = 0.25;
  inputs.global_rows = 20;
  inputs.compute.forward_flops = inputs.compute.backward_flops = 10;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 19.5);
  inputs.strategy.delay = 1;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 16.5);
  EXPECT_DOUBLE_EQ(Predict(inputs).exposed_seconds, 13.5);
  inputs.compute.forward_flops = inputs.compute.backward_flops = 1;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 30);
  EXPECT_EQ(Predict(inputs).exposed_seconds, 0);
}

// The same with gradients of half the bytes: 2 + 2 MB in, 4 + 4 MB out.
TEST(PredictStepTest, EncodedGradientsShortenTheWayToTheServerAlone) {
  const ModelCosts model = SimpleModel({1'000'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  inputs.strategy.gradient_bytes = 2;
  inputs.cluster.bandwidth = 1e6;
  inputs.cluster.latency = 0.25;
  const Prediction p = Predict(inputs);
  EXPECT_DOUBLE_EQ(p.step_seconds, 12.5);
  EXPECT_EQ(p.bytes_sent_per_rank, 2e6);
  EXPECT_EQ(p.bytes_per_step, 12e6);
  // Weights twice and two gradients; weights, a gradient and its encoded copy.
  EXPECT_EQ(p.server_memory, 4e6 + 4e6 + 2e6 + 2e6);
  EXPECT_EQ(p.worker_memory,
            Predict(SimpleInputs(model, Exchange::kParameterServer, 2))
                    .worker_memory +
                2e6);
  // And 2 + 2 MB out.
  inputs.strategy.weight_bytes = 2;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 8.5);
  EXPECT_EQ(Predict(inputs).bytes_per_step, 8e6);
  EXPECT_EQ(Predict(inputs).server_memory, p.server_memory + 2e6);
}

// 136 bytes for 1024 elements, and a residual as large as the weights.
TEST(PredictStepTest, CompressedGradientsHaveFractionsOfBytesAndAResidual) {
  const ModelCosts model = SimpleModel({1'024'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  const Prediction plain = Predict(inputs);
  inputs.strategy.gradient_bytes = 136.0 / 1024;
  EXPECT_EQ(Predict(inputs).bytes_sent_per_rank, 136e3);
  EXPECT_EQ(Predict(inputs).worker_memory, plain.worker_memory + 136e3);
  EXPECT_EQ(Predict(inputs).server_memory,
            plain.server_memory - 2 * (4'096e3 - 136e3));
  inputs.strategy.error_feedback = true;
  EXPECT_EQ(Predict(inputs).worker_memory,
            plain.worker_memory + 136e3 + 4'096e3);
}

// As many servers as workers: every link carries the model once each way.
TEST(PredictStepTest, AsManyServersAsWorkersCarryTheModelOnceEachWay) {
  const ModelCosts model = SimpleModel({1 << 20});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 4);
  inputs.strategy.servers = 4;
  inputs.cluster.bandwidth = 1 << 20;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 8);
}

// Blocks one after the other: while the second goes up the first comes down.
// 2 MiB each at 1 MiB/s for one worker: up at 2 and 4, down at 4 and 6.
TEST(PredictStepTest, AnswersComeDownWhileLaterBlocksGoUp) {
  const ModelCosts model = SimpleModel({1 << 19, 1 << 19});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 1);
  inputs.strategy.bucket_bytes = 2 << 20;
  inputs.cluster.bandwidth = 1 << 20;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 6);
}

// Blocks of 2 MiB, two workers, 1 MiB/s: both first blocks are up at 4 s, the
// second ones at 8 s; the answers follow, 4 s each.
TEST(PredictStepTest, TheFlowsIntoAServerKeepStep) {
  const ModelCosts model = SimpleModel({1 << 19, 1 << 19});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  inputs.strategy.bucket_bytes = 2 << 20;
  inputs.cluster.bandwidth = 1 << 20;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 12);
}

// A model of 8 MiB. Over a link it has 32 blocks, and the last answer comes one
// block late; over the machine's loopback it has 2.
TEST(PredictStepTest, TheDefaultBlockFollowsTheLinks) {
  const ModelCosts model = SimpleModel({1 << 21});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 1);
  inputs.strategy.bucket_bytes = 0;
  inputs.cluster.bandwidth = 1 << 23;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 1 + 1.0 / 32);
  inputs.cluster.shared_cores = 2;  // simulated hosts
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 1 + 1.0 / 32);
  inputs.cluster.bandwidth = int64_t{1} << 33;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 1.5 / 1024);
}

TEST(PredictStepTest, MoreServersAreNeverSlowerWhereTheirLinksAreTheNarrow) {
  const ModelCosts model = SimpleModel({1 << 20, 1 << 18, 1 << 20});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 8);
  inputs.cluster.bandwidth = 1e6;
  double before = 1e9;
  for (int servers = 1; servers <= 8; ++servers) {
    inputs.strategy.servers = servers;
    const double seconds = Predict(inputs).step_seconds;
    EXPECT_LE(seconds, before) << servers;
    before = seconds;
  }
  // 9 MiB, 8 workers: from 8 times both ways to once both ways.
  EXPECT_NEAR(before, 2 * 9 * 1.048576, 1);
}

// 4 MB among four: three quarters go out, and three quarters again.
TEST(PredictStepTest, AnAllReduceSendsTwiceAllButItsPart) {
  const ModelCosts model = SimpleModel({1'000'000});
  for (Exchange exchange :
       {Exchange::kAllReduce, Exchange::kShardedAllReduce}) {
    CostInputs inputs = SimpleInputs(model, exchange, 4);
    inputs.cluster.bandwidth = 1e6;
    inputs.cluster.latency = 0.25;
    const Prediction p = Predict(inputs);
    EXPECT_DOUBLE_EQ(p.step_seconds, 6.5);
    EXPECT_EQ(p.bytes_sent_per_rank, 6e6);
    EXPECT_EQ(p.bytes_per_step, 24e6);
  }
}

// 1,000 elements are sent whole to each of three others, in one round.
TEST(PredictStepTest, ASmallAllReduceIsOneRound) {
  const ModelCosts model = SimpleModel({1000});
  CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 4);
  inputs.cluster.bandwidth = 12'000;
  inputs.cluster.latency = 0.25;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 1.25);
}

// The last layer's gradient is there at 4 s and summed by 5 s, the first
// layer's at 6 s: only its second is exposed.
TEST(PredictStepTest, WhatIsSentDuringBackwardIsHidden) {
  const ModelCosts model = SimpleModel({250'000, 250'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 2);
  inputs.strategy.first_bucket_bytes = inputs.strategy.bucket_bytes = 1000;
  inputs.compute.forward_flops = inputs.compute.backward_flops = 1;
  inputs.cluster.bandwidth = 1e6;
  const Prediction p = Predict(inputs);
  EXPECT_DOUBLE_EQ(p.compute_seconds, 6);
  EXPECT_DOUBLE_EQ(p.step_seconds, 7);
  EXPECT_DOUBLE_EQ(p.exposed_seconds, 1);
}

TEST(PredictStepTest, LinksWithoutLimitExposeNothing) {
  const ModelCosts model = SimpleModel({1000, 2000});
  for (Exchange exchange : {Exchange::kParameterServer, Exchange::kAllReduce,
                            Exchange::kShardedAllReduce, Exchange::kThreads}) {
    CostInputs inputs = SimpleInputs(model, exchange, 4);
    inputs.compute.forward_flops = inputs.compute.backward_flops = 1;
    const Prediction p = Predict(inputs);
    EXPECT_DOUBLE_EQ(p.step_seconds, 6);
    EXPECT_EQ(p.exposed_seconds, 0);
  }
}

TEST(PredictStepTest, OnlyTheLastMicroBatchIsFollowedByAnExchange) {
  const ModelCosts model = SimpleModel({250'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 2);
  inputs.accumulation = 5;
  inputs.compute.forward_flops = inputs.compute.backward_flops = 1;
  inputs.cluster.bandwidth = 1e6;
  const Prediction p = Predict(inputs);
  EXPECT_DOUBLE_EQ(p.compute_seconds, 15);
  EXPECT_DOUBLE_EQ(p.step_seconds, 16);
}

TEST(PredictStepTest, AnExchangeEveryFourthStepCostsAFourth) {
  const ModelCosts model = SimpleModel({1'000'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 2);
  inputs.cluster.bandwidth = 1e6;
  inputs.strategy.exchange_every = 4;
  const Prediction p = Predict(inputs);
  EXPECT_DOUBLE_EQ(p.step_seconds, 4);
  EXPECT_EQ(p.bytes_sent_per_rank, 1e6);
}

TEST(PredictStepTest, FourWorkersOnTwoCoresTakeTwiceAsLong) {
  const ModelCosts model = SimpleModel({1000});
  CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 4);
  inputs.compute.forward_flops = inputs.compute.backward_flops = 1;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 3);
  inputs.cluster.shared_cores = 2;
  EXPECT_DOUBLE_EQ(Predict(inputs).step_seconds, 6);
}

// Two stages that would work side by side take turns on one core: a step takes
// 8 times 1 s, all that they compute, instead of 4 + 1 times.
TEST(PredictStepTest, StagesOnOneCoreTakeTurns) {
  const ModelCosts model = SimpleModel({10, 10});
  CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 2);
  inputs.strategy.stages = 2;
  inputs.strategy.micro_batches = 4;
  inputs.global_rows = 4;
  inputs.compute.forward_flops = inputs.compute.backward_flops = 3;
  EXPECT_NEAR(Predict(inputs).step_seconds, 5, kNear);
  inputs.cluster.shared_cores = 1;
  EXPECT_NEAR(Predict(inputs).step_seconds, 8, kNear);
}

// Two workers push a block each and get two answers: four messages whose ends
// take 0.5 s each. An all-reduce of two takes two rounds of a message each.
TEST(PredictStepTest, MessagesTakeCoresThatAreShared) {
  const ModelCosts model = SimpleModel({10'000});
  for (Exchange exchange : {Exchange::kParameterServer, Exchange::kAllReduce}) {
    CostInputs inputs = SimpleInputs(model, exchange, 2);
    inputs.compute.cpu_seconds_per_message = 0.5;
    EXPECT_EQ(Predict(inputs).step_seconds, 0);
    inputs.cluster.shared_cores = 2;
    EXPECT_NEAR(Predict(inputs).step_seconds, 4 * 2 * 0.5 / 2, kNear);
  }
}

// Four equal stages and eight micro-batches of 1 s each: 8 + 3 times.
TEST(PredictStepTest, APipelinesBubbleIsThatOfThePapers) {
  const ModelCosts model = SimpleModel({10, 10, 10, 10});
  for (PipelineSchedule schedule :
       {PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kGpipe}) {
    CostInputs inputs = SimpleInputs(model, Exchange::kAllReduce, 4);
    inputs.strategy.stages = 4;
    inputs.strategy.micro_batches = 8;
    inputs.strategy.schedule = schedule;
    inputs.global_rows = 8;
    inputs.compute.forward_flops = inputs.compute.backward_flops = 3;
    const Prediction p = Predict(inputs);
    EXPECT_NEAR(p.compute_seconds, 8, kNear);
    EXPECT_NEAR(p.waiting_seconds, 3, kNear);
    EXPECT_NEAR(p.waiting_seconds / p.step_seconds, 3.0 / (8 + 3), kNear);
    // Every micro-batch of one element once forward, once back; the middle
    // stages send both ways.
    EXPECT_EQ(p.bytes_sent_per_rank, 2 * 8 * 4);
    EXPECT_EQ(p.bytes_per_step, 3 * 2 * 8 * 4);
  }
}

// Two replicas of two stages over two servers: each stage pushes its half.
TEST(PredictStepTest, StagesPushWhatTheyHold) {
  const ModelCosts model = SimpleModel({1 << 20, 1 << 20});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 4);
  inputs.strategy.stages = 2;
  inputs.strategy.servers = 2;
  const Prediction p = Predict(inputs);
  // 4 MiB of gradients; an element for each of two samples, there and back.
  EXPECT_EQ(p.bytes_sent_per_rank, (4 << 20) + 8);
  EXPECT_EQ(p.bytes_per_step, 2 * 2 * (8 << 20) + 2 * 2 * 8);
}

// Adam, four workers, two servers. A worker: weights, gradients, and of its
// sample one kept element and its input. A server: half of two versions of the
// weights, two states, four gradients.
TEST(PredictStepTest, MemoryIsCountedByWhatAProcessHolds) {
  const ModelCosts model = SimpleModel({1'000'000});
  CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 4);
  inputs.strategy.servers = 2;
  inputs.optimizer_states = 2;
  inputs.compute.process_bytes = 100;
  inputs.compute.server_process_bytes = 10;
  Prediction p = Predict(inputs);
  EXPECT_EQ(p.worker_memory, 100 + 4 * (2e6 + 2));
  EXPECT_EQ(p.server_memory, 10 + 4 * 0.5e6 * (2 + 2 + 4));
  // All optimizer states, or a fourth of them and others' parts of a bucket.
  inputs.strategy.exchange = Exchange::kAllReduce;
  p = Predict(inputs);
  EXPECT_EQ(p.worker_memory, 100 + 4 * (4e6 + 2) + 4e6);
  EXPECT_EQ(p.server_memory, 0);
  inputs.strategy.exchange = Exchange::kShardedAllReduce;
  p = Predict(inputs);
  EXPECT_EQ(p.worker_memory, 100 + 4 * (2.5e6 + 2) + 4e6);
  inputs.strategy.exchange = Exchange::kThreads;
  p = Predict(inputs);
  EXPECT_EQ(p.worker_memory, 100 + 4 * (4 * (2e6 + 2) + 2e6));
}

TEST(PredictStepTest, WhatDoesNotFitIsRefused) {
  const ModelCosts model = SimpleModel({1000, 1000});
  const auto error = [&](auto change) {
    CostInputs inputs = SimpleInputs(model, Exchange::kParameterServer, 4);
    change(inputs);
    return std::string(PredictStep(inputs).status().message());
  };
  EXPECT_THAT(error([](CostInputs& in) { in.strategy.tensor = 3; }),
              HasSubstr("4 workers are no multiple of tensor 3 x stages 1"));
  EXPECT_THAT(error([](CostInputs& in) { in.strategy.stages = 4; }),
              HasSubstr("has 2 parts that stages may hold, wanted 4"));
  EXPECT_THAT(error([](CostInputs& in) { in.strategy.servers = 0; }),
              HasSubstr("servers wants at least 1"));
  EXPECT_THAT(error([](CostInputs& in) { in.strategy.servers = 1000; }),
              HasSubstr("num_shards must be 1 to 256"));
  EXPECT_THAT(error([](CostInputs& in) { in.cluster.bandwidth = 0; }),
              HasSubstr("bandwidth wants at least 0.001, got 0"));
  // Tiny, infinite or NaN values, with which the sums would not be numbers.
  EXPECT_THAT(error([](CostInputs& in) { in.compute.backward_flops = 1e-300; }),
              HasSubstr("backward compute wants at least 0.001, got 1e-300"));
  EXPECT_THAT(error([](CostInputs& in) { in.cluster.shared_cores = 5e-324; }),
              HasSubstr("shared cores"));
  EXPECT_THAT(error([](CostInputs& in) { in.cluster.shared_cores = NAN; }),
              HasSubstr("shared cores"));
  EXPECT_THAT(error([](CostInputs& in) { in.cluster.latency = INFINITY; }),
              HasSubstr("latency"));
  EXPECT_THAT(error([](CostInputs& in) { in.model = nullptr; }),
              HasSubstr("wants a model"));
  EXPECT_THAT(error([](CostInputs& in) {
                in.strategy.exchange = Exchange::kThreads;
                in.strategy.tensor = 2;
              }),
              HasSubstr("one process"));
}

}  // namespace
}  // namespace tributary
