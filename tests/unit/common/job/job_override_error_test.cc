// SPDX-License-Identifier: Apache-2.0
// Messages about overrides (--set) that spoil a good job.
#include "absl/strings/str_cat.h"
#include "common/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

// A good language model job without a file; each test spoils one thing.
constexpr char kTokensJob[] = R"(model:
  sequential:
    - embedding: {tokens: 16, dim: 8}
    - position_embedding: {length: 4, dim: 8}
    - residual:
        body: [{layernorm: {features: 8}}, {attention: {dim: 8, heads: 2, causal: true}}]
    - tied_linear: {to: 0.weight}
data:
  train: {synthetic: {kind: markov_text, rows: 100, length: 4}}
  batch_size: 16
training:
  epochs: 2
  loss: cross_entropy
  optimizer: adam
)";

struct SpoilingOverride {
  const char* text;
  const char* error;
};

constexpr SpoilingOverride kSpoilingOverrides[] = {
    {"model.sequential=[]",
     "--set model.sequential=[]: model.sequential is empty"},
    {"data.train.synthetic.rows=0",
     "--set data.train.synthetic.rows=0: data.train.synthetic.rows must be at "
     "least 1 and at most 1000000000000000, got 0"},
    {"model=",
     "--set model=: model wants one of sequential, mlp, cnn, gpt, resnet"},
    {"training.optimizer={adagrad: {epsilon: -1}}",
     "--set training.optimizer={adagrad: {epsilon: -1}}: "
     "training.optimizer.adagrad.epsilon must be at least 0, got -1"},
    {"training.optimizer={rmsprop: {alpha: 1}}",
     "--set training.optimizer={rmsprop: {alpha: 1}}: "
     "training.optimizer.rmsprop.alpha must be at least 0 and below 1, got 1"},
    {"data.train.idx.images=",
     "--set data.train.idx.images=: data.train.idx.images wants a list, got "
     "nothing"},
    {"training.learning_rate_schedule={step: {gamma: 2}}",
     "--set training.learning_rate_schedule={step: {gamma: 2}}: step_size is "
     "missing in training.learning_rate_schedule.step"},
    {"training.learning_rate_schedule={linear: {start_factor: 0}}",
     "--set training.learning_rate_schedule={linear: {start_factor: 0}}: "
     "training.learning_rate_schedule.linear.start_factor must be above 0 and "
     "at most 1, got 0"},
    {"training.steps",
     "--set training.steps: wants key=value, as in training.steps=100"},
    {"training.optimiser.adam=1",
     R"(--set training.optimiser.adam=1: unknown field "optimiser" in training; did you mean "optimizer"?)"},
    {"training.epochs=0",
     "--set training.epochs=0: training.epochs must be at least 1 and at most "
     "1000000000, got 0"},
    {"trace={first_step: 9}",
     "--set trace={first_step: 9}: last_step is missing in trace"},
    {"trace={first_step: 9, last_step: 8}",
     "--set trace={first_step: 9, last_step: 8}: trace.last_step must be from "
     "first_step, 9, to 1008, got 8"},
    {"trace={first_step: 1, last_step: 1001}",
     "--set trace={first_step: 1, last_step: 1001}: trace.last_step must be "
     "from first_step, 1, to 1000, got 1001"},
    {"trace={first_step: 0, last_step: 1}",
     "--set trace={first_step: 0, last_step: 1}: trace.first_step must be at "
     "least 1 and at most 1000000000000000, got 0"},
    {"training.epochs.x=1",
     R"(--set training.epochs.x=1: training.epochs is a whole number and has no field "x")"},
    {"model.sequential.9.relu={}",
     R"(--set model.sequential.9.relu={}: model.sequential has 3 entries counted from 0, got "9")"},
    {"model.sequential.x.relu={}",
     R"(--set model.sequential.x.relu={}: model.sequential has 3 entries counted from 0, got "x")"},
    {"model.sequential.2.linear.in=9",
     "--set model.sequential.2.linear.in=9: model.sequential.2.linear.in is 9, "
     "but model.sequential.0.linear.out makes 8 features"},
    {"training.optimizer=sgd",
     "--set training.optimizer=sgd: learning_rate is missing in "
     "training.optimizer.sgd"},
    {"training.optimizer=[1",
     "--set training.optimizer=[1: not valid YAML: end of sequence flow not "
     "found"},
    {"=3",
     R"(--set =3: unknown field "" in the job; the job knows name, model, data, training, strategy, cluster, seed, device, checkpoint, trace, program, evaluation)"},
    {"", "--set : wants key=value, as in training.steps=100"},
    {"training..epochs=3",
     R"(--set training..epochs=3: unknown field "" in training; training knows epochs, steps, loss, optimizer, learning_rate_schedule, gradient_accumulation, clip_norm, precision, nonfinite, parameter_groups, divergence)"},
    {"training.learning_rate_schedule=cosin",
     R"(--set training.learning_rate_schedule=cosin: unknown field "cosin" in training.learning_rate_schedule; did you mean "cosine"?)"},
    {"strategy.parameter_server.sync={bsp: {backup_workers: 1}}",
     "--set strategy.parameter_server.sync={bsp: {backup_workers: 1}}: "
     "strategy.parameter_server.sync.bsp.backup_workers must be below the "
     "number of workers, 1, got 1"},
    {"strategy=all_redce",
     R"(--set strategy=all_redce: unknown field "all_redce" in strategy; did you mean "all_reduce"?)"},
    {"strategy={all_reduce: {bucket_bytes: 12}}",
     "--set strategy={all_reduce: {bucket_bytes: 12}}: "
     "strategy.all_reduce.bucket_bytes must be at least 1KiB and at most 1GiB, "
     "got 12"},
    {"strategy={all_reduce: {backend: mpi}}",
     R"(--set strategy={all_reduce: {backend: mpi}}: strategy.all_reduce.backend wants auto, gloo or nccl, got "mpi")"},
    {"cluster={servers: 0}",
     "--set cluster={servers: 0}: cluster.servers must be at least 1 and at "
     "most 256, got 0"},
    {"strategy.parameter_server.sync={ssp: {stalenes: 2}}",
     "--set strategy.parameter_server.sync={ssp: {stalenes: 2}}: unknown field "
     "\"stalenes\" in strategy.parameter_server.sync.ssp; did you mean "
     "\"staleness\"?"},
    {"strategy.parameter_server.sync=local_sgd",
     "--set strategy.parameter_server.sync=local_sgd: period is missing in "
     "strategy.parameter_server.sync.local_sgd"},
    {"checkpoint.every_steps=-1",
     "--set checkpoint.every_steps=-1: checkpoint.every_steps must be at least "
     "0 and at most 1000000000000000, got -1"},
    {"evaluation.keep_best=true",
     "--set evaluation.keep_best=true: evaluation wants data.validation or "
     "data.test, on which the job evaluates"},
    {"cluster.on_worker_loss=wiat",
     "--set cluster.on_worker_loss=wiat: cluster.on_worker_loss wants wait, "
     "shrink or fail, got \"wiat\"; did you mean wait?"},
    {"cluster.workers=two",
     R"(--set cluster.workers=two: cluster.workers wants a whole number, got "two")"},
    {"data.train.npy.features=x.npy",
     "--set data.train.npy.features=x.npy: labels is missing in "
     "data.train.npy"},
};

// Overrides of kTokensJob.
constexpr SpoilingOverride kSpoiledLayers[] = {
    {"model.sequential.1={embedding: {tokens: 16, dim: 8}}",
     "--set model.sequential.1={embedding: {tokens: 16, dim: 8}}: "
     "model.sequential.1.embedding must be the first layer: it takes token "
     "ids"},
    {"model.sequential.0.embedding.tokens=16777217",
     "--set model.sequential.0.embedding.tokens=16777217: "
     "model.sequential.0.embedding.tokens must be at least 1 and at most "
     "16777216, got 16777217"},
    {"model.sequential.1.position_embedding.dim=9",
     "--set model.sequential.1.position_embedding.dim=9: "
     "model.sequential.1.position_embedding.dim is 9, but "
     "model.sequential.0.embedding.dim makes 8 features"},
    {"model.sequential.2.residual.body.1.attention.heads=3",
     "--set model.sequential.2.residual.body.1.attention.heads=3: "
     "model.sequential.2.residual.body.1.attention.heads must divide dim, 8, "
     "got 3"},
    {"model.sequential.2.residual.body.1={linear: {in: 8, out: 7}}",
     "job.yaml:5: model.sequential.2.residual.body makes 7 features, but its "
     "input has 8"},
    {"model.sequential.2.residual.shortcut=[{linear: {in: 8, out: 6}}]",
     "job.yaml:5: model.sequential.2.residual.body makes 8 features, but the "
     "shortcut makes 6"},
    {"model.sequential.2.residual.shortcut=[{tied_linear: {to: 0.weight}}]",
     "--set model.sequential.2.residual.shortcut=[{tied_linear: {to: "
     "0.weight}}]: model.sequential.2.residual.shortcut.0.tied_linear stands "
     "in a residual; it must be a layer of the model itself"},
    {"model.sequential.3={batch_norm: {features: 8}}",
     "--set model.sequential.3={batch_norm: {features: 8}}: "
     "model.sequential.3.batch_norm takes images or plain features, here come "
     "sequences of tokens; layernorm takes them"},
    {"model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, {batch_norm: "
     "{features: 8}}]",
     "--set model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, "
     "{batch_norm: {features: 8}}]: model.sequential.1.batch_norm.features is "
     "8, but model.sequential.0.conv2d.out makes 4 channels"},
    {"model.sequential.3={group_norm: {groups: 2, features: 8}}",
     "--set model.sequential.3={group_norm: {groups: 2, features: 8}}: "
     "model.sequential.3.group_norm takes images or plain features, here come "
     "sequences of tokens; layernorm takes them"},
    {"model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, {group_norm: "
     "{groups: 2, features: 8}}]",
     "--set model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, "
     "{group_norm: {groups: 2, features: 8}}]: "
     "model.sequential.1.group_norm.features is 8, but "
     "model.sequential.0.conv2d.out makes 4 channels"},
    {"model.sequential.3={batch_norm: {features: 8, epsilon: 0}}",
     "--set model.sequential.3={batch_norm: {features: 8, epsilon: 0}}: "
     "model.sequential.3.batch_norm.epsilon must be above 0, got 0"},
    {"model.sequential.3={batch_norm: {features: 8, momentum: 0}}",
     "--set model.sequential.3={batch_norm: {features: 8, momentum: 0}}: "
     "model.sequential.3.batch_norm.momentum must be above 0 and at most 1, "
     "got 0"},
    {"model={resnet: {classes: 10, depth: 19}}",
     "--set model={resnet: {classes: 10, depth: 19}}: model.resnet.depth must "
     "be 8 or more by a multiple of 6, two convolutions for each block of 3 "
     "stages; got 19"},
    {"model={resnet: {classes: 10, depth: 2, channels: [8]}}",
     "--set model={resnet: {classes: 10, depth: 2, channels: [8]}}: "
     "model.resnet.depth must be at least 4 and at most 10000, got 2"},
    {"model={resnet: {}}",
     "--set model={resnet: {}}: classes is missing in model.resnet"},
    {"training.precision=float16",
     "--set training.precision=float16: training.precision wants float32 or "
     "bfloat16, got \"float16\"; did you mean bfloat16?"},
    {"model.sequential.2={tied_linear: {to: 0.weight}}",
     "job.yaml:7: model.sequential.3.tied_linear is tied to 0.weight, as a "
     "layer before it; one may be"},
    {"model.sequential.3.tied_linear.to=1.weight",
     "--set model.sequential.3.tied_linear.to=1.weight: "
     "model.sequential.3.tied_linear.to wants the weight of an embedding, "
     "which is the first layer: \"0.weight\"; got \"1.weight\""},
    {"model.sequential.3={conv2d: {in: 4, out: 6, kernel: 3, groups: 4}}",
     "--set model.sequential.3={conv2d: {in: 4, out: 6, kernel: 3, groups: "
     "4}}: model.sequential.3.conv2d.groups must divide in and out, 4 and 6, "
     "got 4"},
    {"model.sequential.3={conv2d: {in: 4, out: 6, kernel: [1, 2, 3]}}",
     "--set model.sequential.3={conv2d: {in: 4, out: 6, kernel: [1, 2, 3]}}: "
     "model.sequential.3.conv2d.kernel wants one number or [height, width], "
     "got 3 numbers"},
    {"model.sequential.3={conv2d: {in: 4, out: 6, kernel: 0}}",
     "--set model.sequential.3={conv2d: {in: 4, out: 6, kernel: 0}}: "
     "model.sequential.3.conv2d.kernel.0 must be at least 1 and at most "
     "65536, got 0"},
    {"model.sequential.3={max_pool: {kernel: 2, padding: 2}}",
     "--set model.sequential.3={max_pool: {kernel: 2, padding: 2}}: "
     "model.sequential.3.max_pool.padding must be at most half the kernel, 1, "
     "got 2"},
    {"model.gpt={layers: 1, dim: 8, heads: 2, length: 4, vocabulary: 16}",
     "--set model.gpt={layers: 1, dim: 8, heads: 2, length: 4, vocabulary: "
     "16}: gpt and sequential exclude each other in model; keep one"},
    {"model={gpt: {layers: 1, dim: 9, heads: 2, length: 4, vocabulary: 16}}",
     "--set model={gpt: {layers: 1, dim: 9, heads: 2, length: 4, vocabulary: "
     "16}}: model.gpt.heads must divide dim, 9, got 2"},
    {"model={gpt: {layers: 1, dim: 8, heads: 2, vocabulary: 16}}",
     "--set model={gpt: {layers: 1, dim: 8, heads: 2, vocabulary: 16}}: length "
     "is missing in model.gpt"},
    {"model={cnn: {image: 4, channels: [8, 8, 8], classes: 2}}",
     "--set model={cnn: {image: 4, channels: [8, 8, 8], classes: 2}}: "
     "model.cnn.channels has 3 entries, each of which halves the image; "
     "nothing is left of model.cnn.image"},
    {"model={mlp: {in: 8, hidden: [0], out: 2}}",
     "--set model={mlp: {in: 8, hidden: [0], out: 2}}: model.mlp.hidden.0 must "
     "be at least 1 and at most 2147483647, got 0"},
    {"model={mlp: {in: 8, hidden: [4], out: 16}}",
     "--set model={mlp: {in: 8, hidden: [4], out: 16}}: model.sequential.0 "
     "must be an embedding: data.train makes tokens"},
    {"data.train.synthetic.kind=ctr",
     "job.yaml:9: data.train.synthetic.length belongs to markov_text"},
    {"data.train={text: {path: a.txt, length: 4, begin: 0.9, end: 0.5}}",
     "--set data.train={text: {path: a.txt, length: 4, begin: 0.9, end: "
     "0.5}}: data.train.text.end must be above begin, 0.9, got 0.5"},
    {"data.train={text: {path: a.txt}}",
     "--set data.train={text: {path: a.txt}}: length is missing in "
     "data.train.text"},
};

TEST(JobOverrideErrorTest, EverySpoilingOverrideHasItsSentence) {
  for (const SpoilingOverride& spoiling : kSpoilingOverrides) {
    const auto job = ParseJob(JobWith(0, ""), "job.yaml", {spoiling.text});
    EXPECT_EQ(job.status().message(), spoiling.error) << spoiling.text;
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(JobOverrideErrorTest, TheGoodLanguageModelIsGood) {
  const auto job = ParseJob(kTokensJob, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST(JobOverrideErrorTest, EverySpoiledLayerHasItsSentence) {
  for (const SpoilingOverride& spoiling : kSpoiledLayers) {
    const auto job = ParseJob(kTokensJob, "job.yaml", {spoiling.text});
    EXPECT_EQ(job.status().message(), spoiling.error) << spoiling.text;
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(JobOverrideErrorTest, TextWantsALossOfClasses) {
  const auto job = ParseJob(JobWith(0, ""), "job.yaml",
                            {"data.train.synthetic.kind=markov_text",
                             "model.sequential.0.linear.in=32"});
  EXPECT_EQ(job.status().message(),
            "job.yaml:11: training.loss wants cross_entropy for the tokens "
            "that data.train makes");
}

TEST(JobOverrideErrorTest, WhatAnOverrideReplacedIsForgotten) {
  // `adam` replaced sgd and the rate that the file gave it, so the new sgd has
  // none. `idx` replaced npy, so the labels of the first override are gone.
  const auto job = ParseJob(
      JobWith(0, ""), "job.yaml",
      {"training.optimizer=adam", "training.optimizer.sgd.momentum=0.5"});
  EXPECT_EQ(job.status().message(),
            "--set training.optimizer.sgd.momentum=0.5: learning_rate is "
            "missing in training.optimizer.sgd");
  const auto data = ParseJob(JobWith(0, ""), "job.yaml",
                             {"data.train.npy.labels=y", "data.train.idx={}",
                              "data.train.npy.features=x"});
  EXPECT_EQ(data.status().message(),
            "--set data.train.npy.features=x: labels is missing in "
            "data.train.npy");
}

TEST(JobOverrideErrorTest, ALaterOverrideHealsAnEarlierFault) {
  EXPECT_TRUE(ParseJob(JobWith(10, "  epochs: 0"), "job.yaml",
                       {"training.epochs=0", "training.epochs=1"})
                  .ok());
}

// The resolved job.yaml of a run without servers has 0 of them.
TEST(JobOverrideErrorTest, AStrategyWithServersAsksForThem) {
  const std::string job = absl::StrCat(
      kTokensJob, "strategy: all_reduce\ncluster: {servers: 0, workers: 2}\n");
  EXPECT_TRUE(ParseJob(job, "job.yaml").ok());
  EXPECT_EQ(ParseJob(job, "job.yaml", {"strategy={parameter_server: {}}"})
                .status()
                .message(),
            "--set strategy={parameter_server: {}}: strategy.parameter_server "
            "wants at least 1 server, and cluster.servers is 0: add "
            "--servers 1");
  EXPECT_TRUE(ParseJob(job, "job.yaml",
                       {"strategy={parameter_server: {}}", "cluster.servers=1"})
                  .ok());
}

TEST(JobOverrideErrorTest, TheLearningRateIsTheOptimizers) {
  for (const char* name :
       {"training.lr", "training.learning_rate", "training.optimizer.lr"}) {
    const auto job =
        ParseJob(kTokensJob, "job.yaml", {absl::StrCat(name, "=0.1")});
    EXPECT_THAT(std::string(job.status().message()),
                ::testing::EndsWith("as in training: {optimizer: {adam: "
                                    "{learning_rate: 0.001}}}"))
        << name;
  }
}

}  // namespace
}  // namespace tributary
