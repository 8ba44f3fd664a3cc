// SPDX-License-Identifier: Apache-2.0
// Measures a training step of a single worker: forward, loss, backward and the
// optimizer's update of every parameter, on one thread. Compare with
// bench/pytorch_ddp.py with one process, or with bench/pytorch_models.py.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/job/job_file.h"
#include "common/layers/initializer.h"
#include "common/optimizer/optimizer.h"
#include "kernels/ops.h"
#include "worker/train/model/loss.h"
#include "worker/train/model/model.h"

namespace tributary {
namespace {

constexpr int kBatches = 64;  // more than fit the caches

using Widths = std::vector<int64_t>;
const Widths kMlp1024 = {784, 1024, 1024, 10};
const Widths kMlp16M = {784, 2640, 2640, 2640, 10};

v1::ModelSpec Perceptron(const Widths& widths) {
  v1::ModelSpec spec;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) spec.add_sequential()->mutable_relu();
    v1::LinearSpec* linear = spec.add_sequential()->mutable_linear();
    linear->set_in(widths[i]);
    linear->set_out(widths[i + 1]);
    linear->set_bias(true);
  }
  return spec;
}

// The model to train and the shape of its batches. The presets are those of
// bench/pytorch_models.py.
struct Task {
  v1::ModelSpec model;
  Shape sample;
  int64_t batch = 128;
  int64_t classes = 10;
  bool tokens = false;  // features are ids below `classes`
};

Task PerceptronTask(const Widths& widths) {
  return {Perceptron(widths), {widths.front()}};
}

// The layers of the preset `yaml`, from a job with generated data.
v1::ModelSpec Preset(const std::string& yaml, const std::string& data) {
  const auto job =
      ParseJob("model: " + yaml + "\ndata: {train: {synthetic: " + data +
                   "}, batch_size: 1}\n"
                   "training: {steps: 1, loss: cross_entropy, optimizer: "
                   "adam}\n",
               "bench.yaml");
  if (job.ok()) return job->model();
  std::fprintf(stderr, "%s\n", job.status().ToString().c_str());
  std::abort();
}

// A model with its loss, its optimizer's states and batches of patterned data.
class Step {
 public:
  Step(const Task& task, const char* kind)
      : batch_(task.batch), ops_(CreateCpuOps()), optimizer_(OptionsOf(kind)) {
    auto model = Model::Create(task.model, task.sample,
                               {.ops = ops_.get(), .max_rows = batch_});
    TRIBUTARY_CHECK(model.ok());
    model_ = *std::move(model);
    v1::LossSpec loss_spec;
    loss_spec.mutable_cross_entropy();
    const int64_t positions = model_->output_size() / task.classes;
    auto loss = Loss::Create(loss_spec, {.ops = ops_.get(),
                                         .max_rows = batch_,
                                         .outputs = task.classes,
                                         .positions = positions});
    TRIBUTARY_CHECK(loss.ok());
    loss_ = *std::move(loss);
    StartParameters(task.model);
    features_.resize(kBatches * batch_ * NumElements(task.sample));
    for (size_t i = 0; i < features_.size(); ++i) {
      const uint32_t noise = static_cast<uint32_t>(i) * 2654435761u >> 8;
      features_[i] = task.tokens ? static_cast<float>(noise % task.classes)
                                 : static_cast<float>(noise % 256) / 255.0f;
    }
    for (int64_t i = 0; i < batch_ * positions; ++i) {
      labels_.push_back(i % task.classes);
    }
  }

  void Run() {
    const int64_t batch = step_++ % kBatches;
    const float* logits =
        model_->Forward(features_.data() + batch * features_.size() / kBatches,
                        batch_, {.training = true, .step = step_});
    auto d_logits = loss_->Differentiate(logits, {.labels = labels_.data()},
                                         batch_, 1.0 / batch_);
    TRIBUTARY_CHECK(d_logits.ok());
    model_->Backward(*d_logits, /*accumulate=*/false, nullptr);
    const OptimizerStep prepared = optimizer_.Prepare(
        step_, optimizer_.options().learning_rate, /*gradient_scale=*/1);
    for (size_t p = 0; p < states_.size(); ++p) {
      std::vector<float*> states;
      for (auto& state : states_[p]) states.push_back(state.data());
      float* weight = model_->weight(static_cast<int>(p));
      ops_->OptimizerUpdate(prepared, model_->parameters()[p].size(),
                            model_->gradient(static_cast<int>(p)), weight,
                            weight, states.data());
    }
    TRIBUTARY_CHECK(loss_->Sum().ok());
  }

 private:
  static OptimizerOptions OptionsOf(const char* kind) {
    OptimizerOptions options;
    options.kind = kind;
    options.learning_rate = options.kind == "adam" ? 1e-3 : 1e-2;
    return options;
  }

  void StartParameters(const v1::ModelSpec& spec) {
    const ParameterSpecs& parameters = model_->parameters();
    for (size_t p = 0; p < parameters.size(); ++p) {
      const size_t n = static_cast<size_t>(parameters[p].size());
      InitialWeights(parameters, spec, /*seed=*/1, static_cast<int>(p),
                     {model_->weight(static_cast<int>(p)), n});
      states_.emplace_back(optimizer_.state_names().size(),
                           std::vector<float>(n));
    }
  }

  const int64_t batch_;
  std::unique_ptr<Ops> ops_;
  Optimizer optimizer_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::vector<std::vector<std::vector<float>>> states_;  // [parameter][state]
  std::vector<float> features_;
  std::vector<int64_t> labels_;
  int64_t step_ = 0;
};

void RunSteps(benchmark::State& state, const Task& task, const char* kind) {
  Step step(task, kind);
  step.Run();  // warms up pages and caches
  for (auto _ : state) step.Run();
}

void BM_TrainingStep(benchmark::State& state, const Widths& widths,
                     const char* kind) {
  RunSteps(state, PerceptronTask(widths), kind);
}
BENCHMARK_CAPTURE(BM_TrainingStep, mlp1024_sgd, kMlp1024, "sgd")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainingStep, mlp1024_adam, kMlp1024, "adam")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainingStep, mlp16m_sgd, kMlp16M, "sgd")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainingStep, mlp16m_adam, kMlp16M, "adam")
    ->Unit(benchmark::kMillisecond);

void BM_TrainingStepOfCnn(benchmark::State& state) {
  Task task;
  task.model =
      Preset("{cnn: {image: 28, classes: 10}}", "{kind: ctr, rows: 1}");
  task.sample = {1, 28, 28};
  task.batch = 64;
  RunSteps(state, task, "adam");
}
BENCHMARK(BM_TrainingStepOfCnn)
    ->Name("BM_TrainingStep/cnn_adam")
    ->Unit(benchmark::kMillisecond);

void BM_TrainingStepOfGpt(benchmark::State& state) {
  Task task;
  task.model = Preset(
      "{gpt: {layers: 2, dim: 64, heads: 4, length: 64, vocabulary: 65}}",
      "{kind: markov_text, rows: 1, length: 64}");
  task.sample = {64};
  task.batch = 32;
  task.classes = 65;
  task.tokens = true;
  RunSteps(state, task, "adam");
}
BENCHMARK(BM_TrainingStepOfGpt)
    ->Name("BM_TrainingStep/gpt_adam")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
