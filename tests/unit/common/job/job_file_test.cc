// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_file.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/job_options.h"
#include "common/job/yaml/field_rules.h"
#include "common/layers/model_parameters.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::util::MessageDifferencer;

constexpr char kSmallJob[] = R"(
model:
  sequential:
    - linear: {in: 20, out: 8}
    - relu
    - linear: {in: 8, out: 1}
data:
  train: {synthetic: {kind: linear, rows: 1000}}
  batch_size: 16
training:
  epochs: 2
  loss: mse
  optimizer: {sgd: {learning_rate: 0.1}}
)";

TEST(JobFileTest, ResolvedJobNamesEveryDefault) {
  const v1::JobSpec job = Parse(kSmallJob);
  EXPECT_EQ(JobToYaml(job), R"(name: job
model:
  sequential:
    - linear: {in: 20, out: 8, bias: true}
    - relu: {}
    - linear: {in: 8, out: 1, bias: true}
data:
  train:
    synthetic: {kind: linear, rows: 1000, seed: 11, first_row: 0, length: 0}
  batch_size: 16
training:
  epochs: 2
  loss:
    mse: {}
  optimizer:
    sgd:
      learning_rate: 0.1
      momentum: 0
      nesterov: false
      weight_decay: 0
      dampening: 0
      decay_on: all
  learning_rate_schedule:
    constant: {}
  gradient_accumulation: 1
  clip_norm: 0
  precision: float32
  nonfinite: fail
  divergence: note
strategy:
  parameter_server:
    sync:
      bsp: {backup_workers: 0, delay: 0}
    wire: float32
    sync_timeout_seconds: 120
    weights_wire: float32
    transport: auto
cluster:
  servers: 1
  workers: 1
  on_worker_loss: wait
  max_restarts: 3
  lease_seconds: 10
seed: 1
device: auto
checkpoint: {every_steps: 0, keep: 3, at_end: true}
)");
}

TEST(JobFileTest, ResolvedJobReadsBackToItself) {
  const v1::JobSpec job = Parse(
      kSmallJob,
      {"training.optimizer.lamb={clip_max: 10, beta1: 0.30000000000000004}",
       "training.learning_rate_schedule={multistep: {milestones: [3, 7]}}",
       "data.train.synthetic.normalize={mean: [1, 2.5e-7], std: 3}",
       "name=\"odd: \\\"name\\\" # \\\\ \\t\"", "device=cpu",
       "strategy.parameter_server.bucket_bytes=1536", "data.shuffle=none"});
  const v1::JobSpec again = Parse(JobToYaml(job));
  EXPECT_TRUE(MessageDifferencer::Equals(job, again))
      << job.DebugString() << again.DebugString();
  EXPECT_EQ(job.name(), "odd: \"name\" # \\ \t");
}

TEST(JobFileTest, EverySchemaNumberHasARule) {
  std::set<std::string> seen;
  std::vector<const Descriptor*> types = {v1::JobSpec::descriptor()};
  std::set<std::string> fields;
  while (!types.empty()) {
    const Descriptor* type = types.back();
    types.pop_back();
    if (!seen.insert(type->full_name()).second) continue;
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor& field = *type->field(i);
      fields.insert(std::string(RuleName(field)));
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        types.push_back(field.message_type());
      } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_BOOL &&
                 field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM &&
                 field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
        EXPECT_NE(FieldRuleOf(field), nullptr) << field.full_name();
      }
    }
  }
  for (const FieldRule& rule : AllFieldRules()) {
    EXPECT_TRUE(fields.contains(std::string(rule.field)))
        << rule.field << " is not in the schema";
  }
}

TEST(JobFileTest, EveryOptionalFieldHasADefaultInAResolvedJob) {
  // The exceptions: lengths of schedules, which may be as long as the job; the
  // final rate of schedules that have none; what only some wire formats have;
  // and what follows from the model and the addresses of the servers.
  const std::set<std::string> open = {
      "CsvSource.header",  // true, unless the first row is data
      "CosineScheduleSpec.t_max",
      "WarmupScheduleSpec.total",
      "WarmupScheduleSpec.eta_min",
      "SgdSpec.learning_rate",
      "OuterSpec.nesterov",
      "TextSource.stride",  // the length
      "ParameterServerSpec.bucket_bytes",
      "ParameterServerSpec.error_feedback",
      "ParameterServerSpec.top_k_fraction",
      "PipelineParallelSpec.micro_batches"};  // the stages
  std::set<std::string> seen;
  std::vector<const Descriptor*> types = {v1::JobSpec::descriptor()};
  while (!types.empty()) {
    const Descriptor* type = types.back();
    types.pop_back();
    if (!seen.insert(type->full_name()).second) continue;
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor& field = *type->field(i);
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        types.push_back(field.message_type());
      }
      if (!field.has_optional_keyword()) continue;
      const std::string name(RuleName(field));
      const FieldRule* rule = FieldRuleOf(field);
      const bool has_default = rule != nullptr && rule->fallback != nullptr;
      EXPECT_EQ(has_default, !open.contains(name)) << name;
    }
  }
}

TEST(JobFileTest, DefaultsOfOptimizersArePyTorchs) {
  const auto options = [](const std::string& optimizer) {
    return OptimizerOptionsOf(
        Parse(kSmallJob, {"training.optimizer=" + optimizer})
            .training()
            .optimizer());
  };
  EXPECT_EQ(options("adam").learning_rate, 1e-3);
  EXPECT_EQ(options("adam").beta1, 0.9);
  EXPECT_EQ(options("adam").beta2, 0.999);
  EXPECT_EQ(options("adam").epsilon, 1e-8);
  EXPECT_EQ(options("adam").weight_decay, 0);
  EXPECT_EQ(options("adamw").kind, "adamw");
  EXPECT_EQ(options("adamw").weight_decay, 1e-2);
  EXPECT_EQ(options("{adamw: {weight_decay: 0}}").weight_decay, 0);
  EXPECT_EQ(options("adagrad").learning_rate, 1e-2);
  EXPECT_EQ(options("adagrad").epsilon, 1e-10);
  EXPECT_EQ(options("rmsprop").alpha, 0.99);
  EXPECT_EQ(options("lamb").epsilon, 1e-6);
  EXPECT_TRUE(options("lamb").bias_correction);
  EXPECT_EQ(options("adafactor").learning_rate, 1e-2);
  EXPECT_EQ(options("adafactor").beta2_decay, -0.8);
  EXPECT_EQ(options("adafactor").epsilon, 0x1p-23);
  EXPECT_EQ(options("adafactor").epsilon2, 1e-3);
  EXPECT_EQ(options("adafactor").clip_threshold, 1);
  EXPECT_EQ(options("lion").learning_rate, 1e-4);
  EXPECT_EQ(options("lion").beta2, 0.99);
  EXPECT_EQ(options("ftrl").learning_rate, 0.1);
  EXPECT_EQ(options("ftrl").ftrl_beta, 1);
}

TEST(JobFileTest, OptionsCarryEveryFieldOfTheOptimizer) {
  const auto options = [](const std::string& optimizer) {
    return OptimizerOptionsOf(
        Parse(kSmallJob, {"training.optimizer=" + optimizer})
            .training()
            .optimizer());
  };
  const OptimizerOptions sgd = options(
      "{sgd: {learning_rate: 1, momentum: 0.2, weight_decay: 3,"
      " dampening: 0.4}}");
  EXPECT_EQ(sgd.kind, "sgd");
  EXPECT_EQ(sgd.learning_rate, 1);
  EXPECT_EQ(sgd.momentum, 0.2);
  EXPECT_EQ(sgd.weight_decay, 3);
  EXPECT_EQ(sgd.dampening, 0.4);
  EXPECT_TRUE(
      options("{sgd: {learning_rate: 1, momentum: 0.2, nesterov: true}}")
          .nesterov);
  const OptimizerOptions adam = options(
      "{adam: {learning_rate: 1, beta1: 0.2, beta2: 0.3, epsilon: 4,"
      " weight_decay: 5, amsgrad: true}}");
  EXPECT_EQ(adam.beta1, 0.2);
  EXPECT_EQ(adam.beta2, 0.3);
  EXPECT_EQ(adam.epsilon, 4);
  EXPECT_EQ(adam.weight_decay, 5);
  EXPECT_TRUE(adam.amsgrad);
  const OptimizerOptions adagrad = options(
      "{adagrad: {learning_rate: 1, learning_rate_decay: 2,"
      " initial_accumulator: 3, epsilon: 4, weight_decay: 5}}");
  EXPECT_EQ(adagrad.learning_rate_decay, 2);
  EXPECT_EQ(adagrad.initial_accumulator, 3);
  EXPECT_EQ(adagrad.epsilon, 4);
  EXPECT_EQ(adagrad.weight_decay, 5);
  const OptimizerOptions rmsprop = options(
      "{rmsprop: {learning_rate: 1, alpha: 0.2, epsilon: 3,"
      " momentum: 0.4, centered: true, weight_decay: 6}}");
  EXPECT_EQ(rmsprop.alpha, 0.2);
  EXPECT_EQ(rmsprop.epsilon, 3);
  EXPECT_EQ(rmsprop.momentum, 0.4);
  EXPECT_TRUE(rmsprop.centered);
  EXPECT_EQ(rmsprop.weight_decay, 6);
  const OptimizerOptions lamb = options(
      "{lamb: {weight_decay: 1, bias_correction: false, clip_min: 2,"
      " clip_max: 3}}");
  EXPECT_EQ(lamb.weight_decay, 1);
  EXPECT_FALSE(lamb.bias_correction);
  EXPECT_EQ(lamb.clip_min, 2);
  EXPECT_EQ(lamb.clip_max, 3);
  const OptimizerOptions ftrl = options(
      "{ftrl: {alpha: 1, beta: 2, l1: 3, l2: 4, initial_accumulator: 5}}");
  EXPECT_EQ(ftrl.learning_rate, 1);
  EXPECT_EQ(ftrl.ftrl_beta, 2);
  EXPECT_EQ(ftrl.l1, 3);
  EXPECT_EQ(ftrl.l2, 4);
  EXPECT_EQ(ftrl.initial_accumulator, 5);
}

// A job that goes on may have more steps.
TEST(JobFileTest, ALengthThatAScheduleDoesNotNameStaysOpen) {
  for (const char* length : {"training.steps=70", "training.epochs=7"}) {
    const v1::JobSpec job =
        Parse(kSmallJob, {length, "training.learning_rate_schedule=cosine"});
    EXPECT_FALSE(job.training().learning_rate_schedule().cosine().has_t_max())
        << length;
  }
  EXPECT_EQ(
      ParseJob(kSmallJob, "job.yaml",
               {"training.steps=70",
                "training.learning_rate_schedule={warmup_linear: "
                "{warmup: 70}}"})
          .status()
          .message(),
      "--set training.learning_rate_schedule={warmup_linear: {warmup: "
      "70}}: training.learning_rate_schedule.warmup_linear.warmup must be "
      "below total, 70, got 70");
}

TEST(JobFileTest, AnOverrideOfAOneofReplacesTheOtherMember) {
  const v1::JobSpec job =
      Parse(kSmallJob, {"training.optimizer.adam.learning_rate=0.01",
                        "data.global_batch_size=32", "training.steps=9",
                        "model.sequential.1.dropout.p=0.25"});
  EXPECT_EQ(job.training().optimizer().adam().learning_rate(), 0.01);
  EXPECT_FALSE(job.data().has_batch_size());
  EXPECT_EQ(job.data().global_batch_size(), 32);
  EXPECT_EQ(job.training().steps(), 9);
  EXPECT_EQ(job.model().sequential(1).dropout().p(), 0.25);
}

TEST(JobFileTest, OverridesReplaceMessagesListsAndEntries) {
  const v1::JobSpec job = Parse(
      kSmallJob,
      {"training.optimizer.sgd.momentum=0.9",
       "training.optimizer.sgd={learning_rate: 3}", "model.sequential.1=tanh",
       "model.sequential.0.linear.out=5", "model.sequential.2.linear.in=5"});
  EXPECT_EQ(job.training().optimizer().sgd().momentum(), 0);
  EXPECT_TRUE(job.model().sequential(1).has_tanh());
  EXPECT_EQ(job.model().sequential(0).linear().out(), 5);
}

TEST(JobFileTest, ScalarsStandForMessagesAndForListsOfOne) {
  const v1::JobSpec job =
      Parse(kSmallJob,
            {"data.shuffle=none", "data.train.synthetic.normalize=standardize",
             "strategy.parameter_server.sync=bsp",
             "strategy.parameter_server.bucket_bytes=64KiB"});
  EXPECT_TRUE(job.data().shuffle().none());
  EXPECT_TRUE(job.data().train().synthetic().normalize().standardize());
  EXPECT_TRUE(job.strategy().parameter_server().sync().has_bsp());
  EXPECT_EQ(job.strategy().parameter_server().bucket_bytes(), 65536u);
  const v1::JobSpec mean = Parse(
      kSmallJob, {"data.train.synthetic.normalize={mean: 0.5, std: 0.25}"});
  EXPECT_THAT(mean.data().train().synthetic().normalize().mean(),
              ::testing::ElementsAre(0.5));
}

TEST(JobFileTest, ShuffleTakesTheSeedOfTheJob) {
  EXPECT_EQ(
      Parse(kSmallJob, {"seed=18446744073709551615"}).data().shuffle().seed(),
      18446744073709551615u);
}

// The layers of a preset, as the resolved job writes them.
std::string LayersOf(const std::string& preset) {
  const v1::JobSpec job = Parse(kSmallJob, {"model=" + preset});
  std::string layers;
  for (const ParameterSpec& spec : ModelParameters(job.model())) {
    absl::StrAppend(&layers, spec.name, "[", absl::StrJoin(spec.shape, ","),
                    "] ");
  }
  return layers;
}

TEST(PresetTest, AnMlpHasALayerForEachHiddenWidth) {
  EXPECT_EQ(LayersOf("{mlp: {in: 20, hidden: [8, 4], out: 1, dropout: 0.5}}"),
            "0.weight[8,20] 0.bias[8] 3.weight[4,8] 3.bias[4] 6.weight[1,4] "
            "6.bias[1] ");
}

TEST(PresetTest, ACnnHalvesItsImageWithEveryConvolution) {
  const v1::JobSpec job = Parse(
      kSmallJob,
      {"model={cnn: {image: [9, 6], channels: [3, 5], hidden: 7, classes: 1}}",
       "data.train={synthetic: {kind: ctr, rows: 5}}",
       "training.loss=bce_with_logits"});
  // [1, 9, 6] -> [3, 4, 3] -> [5, 2, 1].
  EXPECT_EQ(ModelParameters(job.model()),
            (ParameterSpecs{{"0.weight", {3, 1, 3, 3}},
                            {"0.bias", {3}},
                            {"3.weight", {5, 3, 3, 3}},
                            {"3.bias", {5}},
                            {"7.weight", {7, 10}},
                            {"7.bias", {7}},
                            {"9.weight", {1, 7}},
                            {"9.bias", {1}}}));
  EXPECT_FALSE(job.model().has_cnn());
  EXPECT_EQ(job.model().sequential(2).max_pool().stride(0), 2);
  EXPECT_EQ(job.model().sequential(0).conv2d().stride(0), 1);
}

TEST(PresetTest, AGptIsTwoResidualsALayerBetweenEmbeddingAndTiedHead) {
  const v1::JobSpec job = Parse(
      kSmallJob,
      {"model={gpt: {layers: 1, dim: 8, heads: 2, length: 4, vocabulary: 16}}",
       "data.train={synthetic: {kind: markov_text, rows: 9, length: 4}}",
       "training.loss=cross_entropy"});
  EXPECT_EQ(ModelParameters(job.model()),
            (ParameterSpecs{{"0.weight", {16, 8}},
                            {"1.weight", {4, 8}},
                            {"2.body.0.weight", {8}},
                            {"2.body.0.bias", {8}},
                            {"2.body.1.in_proj_weight", {24, 8}},
                            {"2.body.1.in_proj_bias", {24}},
                            {"2.body.1.out_proj.weight", {8, 8}},
                            {"2.body.1.out_proj.bias", {8}},
                            {"3.body.0.weight", {8}},
                            {"3.body.0.bias", {8}},
                            {"3.body.1.weight", {32, 8}},
                            {"3.body.1.bias", {32}},
                            {"3.body.3.weight", {8, 32}},
                            {"3.body.3.bias", {8}},
                            {"4.weight", {8}},
                            {"4.bias", {8}}}));
  EXPECT_EQ(job.model().sequential(5).tied_linear().to(), "0.weight");
  EXPECT_EQ(job.model().sequential(0).embedding().std(), 0.02);
  const auto [layer, name] =
      LayerOfParameter(job.model(), "2.body.1.out_proj.weight");
  EXPECT_TRUE(layer->has_attention());
  EXPECT_EQ(name, "out_proj.weight");
  const v1::JobSpec again = Parse(JobToYaml(job));
  EXPECT_TRUE(MessageDifferencer::Equals(job, again)) << JobToYaml(job);
}

}  // namespace
}  // namespace tributary
