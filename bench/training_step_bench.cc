// A worker's training step with nobody else: forward, loss, backward and the
// optimizer's update of every parameter, on one thread. Its rival is
// bench/pytorch_ddp.py in a world of one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/check.h"
#include "kernels/ops.h"
#include "kernels/optimizer.h"
#include "worker/model/initializer.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"

namespace tributary {
namespace {

constexpr int64_t kBatch = 128;
constexpr int kBatches = 64;  // as many as leave the caches

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

// A model with its loss, its optimizer's states and batches of some pattern.
class Step {
 public:
  Step(const Widths& widths, OptimizerOptions::Kind kind)
      : ops_(CreateCpuOps()), optimizer_(OptionsOf(kind)) {
    const v1::ModelSpec spec = Perceptron(widths);
    auto model = Model::Create(spec, {widths.front()},
                               {.ops = ops_.get(), .max_rows = kBatch});
    TRIBUTARY_CHECK(model.ok());
    model_ = *std::move(model);
    v1::LossSpec loss_spec;
    loss_spec.mutable_cross_entropy();
    auto loss = Loss::Create(
        loss_spec,
        {.ops = ops_.get(), .max_rows = kBatch, .outputs = widths.back()});
    TRIBUTARY_CHECK(loss.ok());
    loss_ = *std::move(loss);
    StartParameters(spec);
    features_.resize(kBatches * kBatch * widths.front());
    for (size_t i = 0; i < features_.size(); ++i) {
      features_[i] = static_cast<float>(i * 2654435761u % 256) / 255.0f;
    }
    for (int64_t i = 0; i < kBatch; ++i) labels_.push_back(i % widths.back());
  }

  void Run() {
    const int64_t batch = step_++ % kBatches;
    const float* logits =
        model_->Forward(features_.data() + batch * features_.size() / kBatches,
                        kBatch, {.training = true, .step = step_});
    auto d_logits = loss_->Differentiate(logits, {.labels = labels_.data()},
                                         kBatch, 1.0 / kBatch);
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
  static OptimizerOptions OptionsOf(OptimizerOptions::Kind kind) {
    OptimizerOptions options;
    options.kind = kind;
    options.learning_rate = kind == OptimizerOptions::Kind::kAdam ? 1e-3 : 1e-2;
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

  std::unique_ptr<Ops> ops_;
  Optimizer optimizer_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::vector<std::vector<std::vector<float>>> states_;  // [parameter][state]
  std::vector<float> features_;
  std::vector<int64_t> labels_;
  int64_t step_ = 0;
};

void BM_TrainingStep(benchmark::State& state, const Widths& widths,
                     OptimizerOptions::Kind kind) {
  Step step(widths, kind);
  step.Run();  // pages and caches
  for (auto _ : state) step.Run();
}
BENCHMARK_CAPTURE(BM_TrainingStep, mlp1024_sgd, kMlp1024,
                  OptimizerOptions::Kind::kSgd)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainingStep, mlp1024_adam, kMlp1024,
                  OptimizerOptions::Kind::kAdam)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainingStep, mlp16m_sgd, kMlp16M,
                  OptimizerOptions::Kind::kSgd)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainingStep, mlp16m_adam, kMlp16M,
                  OptimizerOptions::Kind::kAdam)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
