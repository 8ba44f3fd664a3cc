// SPDX-License-Identifier: Apache-2.0
// Every dense case of the golden group optim through the CPU's Ops: 257
// weights, 20 steps, the weights after seven of them and the final state.
// PyTorch in float64; LAMB and FTRL from their papers' formulas. The group
// optim_papers has further optimizers from their papers
// (scripts/make_optim.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/optimizer/optimizer.h"
#include "common/update/factored_moments.h"
#include "kernels/ops.h"
#include "tests/unit/kernels/golden_score.h"

namespace tributary::testing {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kWeights = 257;
constexpr int kSteps = 20;

OptimizerOptions OptionsOf(const GoldenCase& c) {
  OptimizerOptions options;
  options.kind = c.Text("op", "");
  options.learning_rate = c.Number("lr", 0);
  options.weight_decay = c.Number("weight_decay", 0);
  options.momentum = c.Number("momentum", 0);
  options.dampening = c.Number("dampening", 0);
  options.nesterov = c.Flag("nesterov");
  const std::vector<double> betas = c.Numbers("betas");
  if (!betas.empty()) {
    options.beta1 = betas[0];
    options.beta2 = betas[1];
  }
  options.epsilon = c.Number("eps", 0);
  options.amsgrad = c.Flag("amsgrad");
  options.learning_rate_decay = c.Number("lr_decay", 0);
  options.initial_accumulator = c.Number("initial_accumulator_value", 0);
  options.alpha = c.Number("alpha", 0);
  options.centered = c.Flag("centered");
  options.bias_correction = c.Flag("bias_correction");
  options.beta2_decay = c.Number("beta2_decay", 0);
  options.epsilon2 = c.Number("eps2", 0);
  options.clip_threshold = c.Number("d", 1);
  const std::vector<double> clip = c.Numbers("clip");
  if (!clip.empty()) {
    options.clip_min = clip[0];
    options.clip_max = clip[1];
  }
  if (options.kind == "ftrl") {
    options.learning_rate = options.alpha;
    options.ftrl_beta = c.Number("beta", 0);
    options.l1 = c.Number("l1", 0);
    options.l2 = c.Number("l2", 0);
    options.initial_accumulator = c.Number("n0", 0);
  }
  return options;
}

// One run of a case: weights and states through all steps.
class Trajectory {
 public:
  Trajectory(Ops& ops, const GoldenCase& c, const Floats& first_weights)
      : ops_(ops), optimizer_(OptionsOf(c)), weights_(first_weights) {
    // FTRL starts from 0 unless it is told to start warm.
    if (c.Text("op", "") == "ftrl" && !c.Flag("warm")) {
      weights_.assign(kWeights, 0.0f);
    }
    states_.resize(optimizer_.state_names().size(), Floats(kWeights));
    optimizer_.InitializeState(kWeights, weights_.data(), StateAt(0).data());
  }

  void Step(int64_t step, double learning_rate, const float* gradient) {
    const OptimizerStep p = optimizer_.Prepare(step, learning_rate, 1);
    if (optimizer_.makes_directions()) {
      StepByTensor(p, step, learning_rate, gradient);
    } else {
      ops_.OptimizerUpdate(p, kWeights, gradient, weights_.data(),
                           weights_.data(), StateAt(0).data());
    }
  }

  const Optimizer& optimizer() const { return optimizer_; }
  const Floats& weights() const { return weights_; }
  const Floats& state(size_t i) const { return states_[i]; }
  const Floats& trust_ratios() const { return trust_ratios_; }

 private:
  std::vector<float*> StateAt(int64_t offset) {
    std::vector<float*> pointers;
    for (Floats& state : states_) pointers.push_back(state.data() + offset);
    return pointers;
  }

  double Norm(int64_t n, const float* x) {
    double squares = 0;
    ops_.GrainSquares(n, /*grain=*/n, x, &squares);
    return std::sqrt(squares);
  }

  // The golden run has three tensors, each with norms of its own.
  void StepByTensor(const OptimizerStep& p, int64_t step, double learning_rate,
                    const float* gradient) {
    const bool matrices = optimizer_.factors();
    const ParameterSpec tensors[] = {
        {"a", matrices ? Shape{10, 10} : Shape{100}},
        {"b", {1}},
        {"c", matrices ? Shape{12, 13} : Shape{156}}};
    trust_ratios_.clear();
    int64_t begin = 0;
    for (const ParameterSpec& tensor : tensors) {
      const int64_t n = tensor.size();
      float* weight = weights_.data() + begin;
      Floats direction(static_cast<size_t>(n));
      if (optimizer_.Factors(tensor)) {
        FactoredDirection(tensor, p, gradient + begin, begin, &direction);
      } else {
        ops_.OptimizerDirection(p, n, gradient + begin, weight,
                                direction.data(), StateAt(begin).data());
      }
      const double rate =
          optimizer_.DirectionRate({.step = step,
                                    .learning_rate = learning_rate,
                                    .weight_norm = Norm(n, weight),
                                    .direction_norm = Norm(n, direction.data()),
                                    .elements = n});
      trust_ratios_.push_back(static_cast<float>(rate / learning_rate));
      ops_.ApplyDirection(n, static_cast<float>(rate), p.weight_scale,
                          direction.data(), weight, weight);
      begin += n;
    }
  }

  void FactoredDirection(const ParameterSpec& tensor, const OptimizerStep& p,
                         const float* gradient, int64_t begin,
                         Floats* direction) {
    FactoredMoments moments(tensor, 0, tensor.size());
    float* const rows = states_[0].data() + begin;
    float* const columns = states_[1].data() + begin;
    moments.Restore(rows, {columns, moments.columns().size()});
    std::vector<double> sums;
    const double norm = Norm(tensor.size(), gradient);
    moments.AppendSums(ops_, p.gradient_scale, FactorUnit(norm * norm),
                       gradient, &sums);
    moments.Update(p, sums);
    moments.MakeDirection(ops_, p, gradient, direction->data());
    moments.Expand(rows, columns);
  }

  Ops& ops_;
  const Optimizer optimizer_;
  Floats weights_;
  std::vector<Floats> states_;
  Floats trust_ratios_;
};

// The name of a state in the golden file; LAMB's there are the paper's.
std::string GoldenStateName(const Optimizer& optimizer, size_t i) {
  const std::string& name = optimizer.state_names()[i];
  if (optimizer.options().kind != "lamb") return "state_" + name;
  return name == "exp_avg" ? "state_m" : "state_v";
}

void CheckCase(Ops& ops, const GoldenCase& c, const GoldenCase& shared,
               GoldenScore& score) {
  const Floats gradients = shared.Tensor("grads").Floats();
  Trajectory run(ops, c, shared.Tensor("w0").Floats());
  std::vector<double> rates(kSteps, run.optimizer().options().learning_rate);
  if (c.Has("lr")) rates = c.Tensor("lr").Doubles();
  const std::vector<double> kept_steps = c.Numbers("steps");
  Floats kept;
  for (int step = 1; step <= kSteps; ++step) {
    run.Step(step, rates[step - 1], gradients.data() + (step - 1) * kWeights);
    if (std::count(kept_steps.begin(), kept_steps.end(), step) > 0) {
      kept.insert(kept.end(), run.weights().begin(), run.weights().end());
    }
  }
  score.Expect(c, "w", kept);
  for (size_t i = 0; i < run.optimizer().state_names().size(); ++i) {
    score.Expect(c, GoldenStateName(run.optimizer(), i), run.state(i));
  }
  if (c.Has("state_trust_ratio")) {
    score.Expect(c, "state_trust_ratio", run.trust_ratios());
  }
}

TEST(GoldenOptimizersTest, EveryDenseCaseOfOptimIsWithinItsTolerance) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const GoldenCase shared = ReadGoldenGroup("optim").at("shared");
  for (const auto& [name, cases] :
       {std::pair("optim", 32), {"optim_papers", 5}}) {
    GoldenScore score(name);
    for (const auto& [id, golden] : ReadGoldenGroup(name)) {
      if (id == "shared") continue;
      score.BeginCase(id);
      CheckCase(*ops, golden, shared, score);
    }
    EXPECT_EQ(score.cases(), cases);
  }
}

// The tests above compare only the states that the optimizer names.
TEST(GoldenOptimizersTest, EveryStateOfTheGoldenFileIsCompared) {
  for (const auto& [id, golden] : ReadGoldenGroup("optim")) {
    if (id == "shared") continue;
    const Optimizer optimizer(OptionsOf(golden));
    size_t states = 0;
    for (const auto& [name, tensor] : golden.tensors) {
      if (name.rfind("state_", 0) == 0 && tensor.role == "expect" &&
          name != "state_trust_ratio") {
        ++states;
      }
    }
    EXPECT_EQ(states, optimizer.state_names().size()) << id;
  }
}

}  // namespace
}  // namespace tributary::testing
