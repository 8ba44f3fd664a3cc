// The training step of one process on one thread without communication:
// forward, loss, backward, update. A multilayer perceptron on random data.
//
//   tributary_step_bench --sizes 784,1024,1024,10 --batch 128 --optimizer sgd
//
// prints the median milliseconds of a step and of its parts. Compare with
// pytorch_step.py through step_vs_pytorch.sh.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "kernels/device.h"
#include "kernels/optimizer.h"
#include "worker/model/initializer.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"

namespace tributary {
namespace {

struct Flags {
  std::vector<int64_t> sizes = {784, 1024, 1024, 10};
  int64_t batch = 128;
  std::string optimizer = "sgd";
  int steps = 100;
  int warmup = 20;
};

// More batches than the second-level cache holds, taken in turn.
constexpr int kBatches = 16;

struct Batch {
  std::vector<float> features;
  std::vector<int64_t> labels;
};

std::vector<Batch> MakeBatches(const Flags& flags) {
  std::mt19937 random(1);
  std::normal_distribution<float> feature;
  std::uniform_int_distribution<int64_t> label(0, flags.sizes.back() - 1);
  std::vector<Batch> batches(kBatches);
  for (Batch& batch : batches) {
    batch.features.resize(flags.batch * flags.sizes.front());
    for (float& x : batch.features) x = feature(random);
    batch.labels.resize(flags.batch);
    for (int64_t& y : batch.labels) y = label(random);
  }
  return batches;
}

v1::ModelSpec MlpSpec(const std::vector<int64_t>& sizes) {
  v1::ModelSpec spec;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    if (i > 0) spec.add_sequential()->mutable_relu();
    v1::LinearSpec* linear = spec.add_sequential()->mutable_linear();
    linear->set_in(sizes[i]);
    linear->set_out(sizes[i + 1]);
  }
  return spec;
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

class StepBench {
 public:
  explicit StepBench(const Flags& flags)
      : ops_(CreateCpuOps()),
        optimizer_(OptionsOf(flags)),
        batches_(MakeBatches(flags)) {
    const v1::ModelSpec spec = MlpSpec(flags.sizes);
    model_ = OrDie(
        Model::Create(spec, {flags.sizes.front()},
                      {.ops = ops_.get(), .max_rows = flags.batch, .seed = 1}));
    v1::LossSpec loss_spec;
    loss_spec.mutable_cross_entropy();
    loss_ = OrDie(Loss::Create(loss_spec, {.ops = ops_.get(),
                                           .max_rows = flags.batch,
                                           .outputs = model_->output_size()}));
    const ParameterSpecs& parameters = model_->parameters();
    for (int p = 0; p < static_cast<int>(parameters.size()); ++p) {
      const int64_t n = parameters[p].size();
      InitialWeights(parameters, spec, 1, p,
                     absl::MakeSpan(model_->weight(p), n));
      states_.emplace_back(optimizer_.state_names().size(),
                           std::vector<float>(n));
    }
  }

  // Seconds of forward and loss, of backward, of the update.
  std::vector<double> Step(int step) {
    const Batch& batch = batches_[step % kBatches];
    const int64_t rows = static_cast<int64_t>(batch.labels.size());
    const double begin = Now();
    const float* logits =
        model_->Forward(batch.features.data(), rows, {.training = true});
    const float* d_logits = OrDie(loss_->Differentiate(
        logits, {.labels = batch.labels.data()}, rows, 1.0 / rows));
    loss_sum_ = OrDie(loss_->Sum());
    const double forward = Now();
    model_->Backward(d_logits, /*accumulate=*/false, nullptr);
    const double backward = Now();
    Update(step);
    return {forward - begin, backward - forward, Now() - backward};
  }

  double loss_sum() const { return loss_sum_; }

 private:
  static OptimizerOptions OptionsOf(const Flags& flags) {
    OptimizerOptions options;
    const bool adam = flags.optimizer == "adam";
    options.kind =
        adam ? OptimizerOptions::Kind::kAdam : OptimizerOptions::Kind::kSgd;
    options.learning_rate = adam ? 1e-3 : 1e-2;
    return options;
  }

  static double Now() {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void Update(int step) {
    const OptimizerStep scalars =
        optimizer_.Prepare(step + 1, optimizer_.options().learning_rate, 1);
    for (size_t p = 0; p < states_.size(); ++p) {
      const int index = static_cast<int>(p);
      std::vector<float*> state;
      for (std::vector<float>& s : states_[p]) state.push_back(s.data());
      ops_->OptimizerUpdate(scalars, model_->parameters()[p].size(),
                            model_->gradient(index), model_->weight(index),
                            model_->weight(index), state.data());
    }
  }

  std::unique_ptr<Ops> ops_;
  Optimizer optimizer_;
  std::vector<Batch> batches_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::vector<std::vector<std::vector<float>>> states_;  // by parameter
  double loss_sum_ = 0;
};

double MedianMs(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2,
                   seconds.end());
  return 1e3 * seconds[seconds.size() / 2];
}

void Run(const Flags& flags) {
  StepBench bench(flags);
  std::vector<double> total, parts[3];
  for (int step = 0; step < flags.warmup + flags.steps; ++step) {
    const std::vector<double> seconds = bench.Step(step);
    if (step < flags.warmup) continue;
    total.push_back(seconds[0] + seconds[1] + seconds[2]);
    for (int i = 0; i < 3; ++i) parts[i].push_back(seconds[i]);
  }
  std::printf(
      "%.3f ms a step (median of %d): forward %.3f, backward %.3f, update "
      "%.3f; last loss %.3f\n",
      MedianMs(total), flags.steps, MedianMs(parts[0]), MedianMs(parts[1]),
      MedianMs(parts[2]), bench.loss_sum() / flags.batch);
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  tributary::Flags flags;
  CLI::App app("Times the training step of one process on one thread.");
  app.add_option("--sizes", flags.sizes, "widths of the layers, input first")
      ->delimiter(',')
      ->expected(2, 64)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", flags.batch)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--optimizer", flags.optimizer)
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str();
  app.add_option("--steps", flags.steps, "steps that are timed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup", flags.warmup, "steps before them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tributary::Run(flags);
}
