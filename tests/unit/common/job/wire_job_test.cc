// SPDX-License-Identifier: Apache-2.0
// How gradients and weights travel, in the job file:
// strategy.parameter_server.wire, weights_wire and transport.
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_options.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;

TEST(WireJobTest, AWireFormatReachesTheStrategy) {
  for (const auto& [wire, bytes] : {std::pair("float32", 4.0),
                                    {"bfloat16", 2.0},
                                    {"float16", 2.0},
                                    {"int8", 260 / 256.0},
                                    {"top_k", 66 / 1024.0},
                                    {"one_bit", 136 / 1024.0}}) {
    const v1::JobSpec job =
        Parse(JobWith(0, ""),
              {std::string("strategy.parameter_server.wire=") + wire});
    EXPECT_EQ(StrategyOf(job).gradient_bytes, bytes) << wire;
    EXPECT_EQ(StrategyOf(job).weight_bytes, 4) << wire;
    EXPECT_TRUE(MessageDifferencer::Equals(job, Parse(JobToYaml(job))));
  }
}

TEST(WireJobTest, AWireFormatOfWeightsReachesTheStrategy) {
  const v1::JobSpec job = Parse(
      JobWith(0, ""), {"strategy.parameter_server.weights_wire=bfloat16"});
  EXPECT_EQ(StrategyOf(job).weight_bytes, 2);
  EXPECT_EQ(StrategyOf(job).gradient_bytes, 4);
}

const std::string kServerPath = "strategy.parameter_server.";

TEST(WireJobTest, CompressionHasErrorFeedbackUnlessTheJobSaysOtherwise) {
  for (const std::string wire : {"int8", "top_k", "one_bit"}) {
    const std::string set = kServerPath + "wire=" + wire;
    const v1::JobSpec job = Parse(JobWith(0, ""), {set});
    EXPECT_TRUE(job.strategy().parameter_server().error_feedback());
    EXPECT_TRUE(StrategyOf(job).error_feedback) << wire;
    const v1::JobSpec without =
        Parse(JobWith(0, ""), {set, kServerPath + "error_feedback=false"});
    EXPECT_FALSE(StrategyOf(without).error_feedback) << wire;
    EXPECT_TRUE(MessageDifferencer::Equals(without, Parse(JobToYaml(without))));
    // Another format does not need what this one has by default.
    EXPECT_FALSE(Parse(JobToYaml(job), {kServerPath + "wire=float32"})
                     .strategy()
                     .parameter_server()
                     .has_error_feedback());
  }
  for (const std::string wire : {"float32", "bfloat16", "float16"}) {
    const v1::JobSpec job = Parse(
        JobWith(0, ""),
        {kServerPath + "wire=" + wire, kServerPath + "error_feedback=false"});
    EXPECT_FALSE(StrategyOf(job).error_feedback) << wire;
  }
  EXPECT_FALSE(StrategyOf(Parse(JobWith(0, ""))).error_feedback);
  EXPECT_FALSE(StrategyOf(Parse(JobWith(0, ""), {"strategy=all_reduce"}))
                   .error_feedback);
}

TEST(WireJobTest, AFractionOfTopKReachesTheStrategy) {
  const std::string top_k = kServerPath + "wire=top_k";
  const v1::JobSpec job = Parse(JobWith(0, ""), {top_k});
  EXPECT_EQ(job.strategy().parameter_server().top_k_fraction(), 0.01);
  const v1::JobSpec quarter =
      Parse(JobWith(0, ""), {top_k, kServerPath + "top_k_fraction=0.25"});
  EXPECT_EQ(StrategyOf(quarter).gradient_bytes, 1.5);
  EXPECT_EQ(StrategyOf(quarter).encoded_gradient_bytes(), 1.5);
  EXPECT_TRUE(MessageDifferencer::Equals(quarter, Parse(JobToYaml(quarter))));
  // A copy is made all the same, although it is longer than the floats.
  const v1::JobSpec all =
      Parse(JobWith(0, ""), {top_k, kServerPath + "top_k_fraction=1"});
  EXPECT_EQ(StrategyOf(all).encoded_gradient_bytes(), 6);
}

std::string RefusalOf(const std::vector<std::string>& overrides) {
  const auto job = ParseJob(JobWith(0, ""), "job.yaml", overrides);
  return job.ok() ? "none" : std::string(job.status().message());
}

TEST(WireJobTest, WhatCompressionExcludesIsRefused) {
  const std::string two = "cluster.workers=2";
  const std::string int8 = kServerPath + "wire=int8";
  const std::string feedback = kServerPath + "error_feedback=true";
  const std::string none = kServerPath + "error_feedback=false";
  for (const std::string wire : {"float32", "bfloat16", "float16"}) {
    EXPECT_EQ(RefusalOf({kServerPath + "wire=" + wire, feedback}),
              "--set " + feedback + ": " + kServerPath +
                  "error_feedback wants wire int8, top_k or one_bit, got " +
                  wire);
  }
  for (const std::string wire : {"int8", "top_k", "one_bit"}) {
    const std::string weights = kServerPath + "weights_wire=" + wire;
    EXPECT_EQ(RefusalOf({weights}),
              "--set " + weights + ": " + kServerPath +
                  "weights_wire wants float32 or bfloat16, "
                  "got " +
                  wire);
  }
  const std::string fraction = kServerPath + "top_k_fraction=";
  EXPECT_EQ(RefusalOf({int8, fraction + "0.1"}),
            "--set " + fraction + "0.1: " + kServerPath +
                "top_k_fraction wants wire top_k, got int8; remove it, as with "
                "--set strategy.parameter_server.top_k_fraction=null");
  for (const std::string value : {"0", "-0.1", "1.5"}) {
    EXPECT_EQ(RefusalOf({kServerPath + "wire=top_k", fraction + value}),
              "--set " + fraction + value + ": " + kServerPath +
                  "top_k_fraction must be above 0 and at most 1, got " + value);
  }

  const std::string backup = kServerPath + "sync={bsp: {backup_workers: 1}}";
  EXPECT_EQ(RefusalOf({two, int8, backup}),
            "--set " + backup + ": " + kServerPath +
                "sync.bsp.backup_workers wants error_feedback: false, because "
                "a contribution that is dropped would lose what its worker "
                "has already taken out of its residual; got 1");
  EXPECT_EQ(RefusalOf({two, int8, backup, none}), "none");
  const std::string shrink = "cluster.on_worker_loss=shrink";
  EXPECT_EQ(RefusalOf({two, int8, shrink}),
            "--set " + shrink +
                ": cluster.on_worker_loss: shrink wants error_feedback: false, "
                "because a lost worker's residual is lost with its process");
  EXPECT_EQ(RefusalOf({two, int8, shrink, none}), "none");
  EXPECT_EQ(RefusalOf({two, int8, shrink, kServerPath + "sync=ssp"}), "none");
  const std::string skip = "training.nonfinite=skip";
  EXPECT_EQ(RefusalOf({int8, skip}),
            "--set " + skip +
                ": training.nonfinite: skip wants error_feedback: false, "
                "because a step that is skipped would lose what the workers "
                "have already taken out of their residuals");
  EXPECT_EQ(RefusalOf({int8, skip, none}), "none");
  for (const std::string sync : {"ssp", "async", "{local_sgd: {period: 2}}"}) {
    EXPECT_EQ(RefusalOf({two, int8, kServerPath + "sync=" + sync}), "none");
  }
}

TEST(WireJobTest, ATransportReachesTheStrategy) {
  EXPECT_EQ(StrategyOf(Parse(JobWith(0, ""))).transport, Transport::kAuto);
  for (const auto& [text, transport] :
       {std::pair("auto", Transport::kAuto),
        {"grpc", Transport::kGrpc},
        {"shared_memory", Transport::kSharedMemory}}) {
    const v1::JobSpec job =
        Parse(JobWith(0, ""),
              {std::string("strategy.parameter_server.transport=") + text});
    EXPECT_EQ(StrategyOf(job).transport, transport) << text;
    EXPECT_TRUE(MessageDifferencer::Equals(job, Parse(JobToYaml(job))));
  }
}

TEST(WireJobTest, NullRemovesAField) {
  const v1::JobSpec job =
      Parse(JobWith(0, ""), {"strategy.parameter_server={wire: top_k, "
                             "top_k_fraction: 0.5}",
                             "strategy.parameter_server.wire=int8",
                             "strategy.parameter_server.top_k_fraction=null",
                             "data.shuffle=none", "data.shuffle=null"});
  EXPECT_EQ(job.strategy().parameter_server().wire(), v1::WIRE_FORMAT_INT8);
  EXPECT_FALSE(job.strategy().parameter_server().has_top_k_fraction());
  EXPECT_FALSE(job.data().shuffle().none());
  // An empty value may come from a script's variable that is not set.
  EXPECT_FALSE(ParseJob(JobWith(0, ""), "job.yaml", {"training.steps="}).ok());
}

}  // namespace
}  // namespace tributary
