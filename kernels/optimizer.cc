#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

using Kind = OptimizerOptions::Kind;

UpdateRule RmspropRule(const OptimizerOptions& options) {
  if (options.centered) {
    return options.momentum > 0 ? UpdateRule::kRmspropCenteredMomentum
                                : UpdateRule::kRmspropCentered;
  }
  return options.momentum > 0 ? UpdateRule::kRmspropMomentum
                              : UpdateRule::kRmsprop;
}

UpdateRule RuleOf(const OptimizerOptions& options) {
  switch (options.kind) {
    case Kind::kSgd:
      if (options.momentum == 0) return UpdateRule::kSgd;
      return options.nesterov ? UpdateRule::kNesterov : UpdateRule::kMomentum;
    case Kind::kAdam:
    case Kind::kAdamW:
      return options.amsgrad ? UpdateRule::kAmsgrad : UpdateRule::kAdam;
    case Kind::kAdagrad:
      return UpdateRule::kAdagrad;
    case Kind::kRmsprop:
      return RmspropRule(options);
    case Kind::kLamb:
      return UpdateRule::kLamb;
    case Kind::kFtrl:
      return UpdateRule::kFtrl;
  }
  TRIBUTARY_CHECK(false);
}

std::vector<std::string> StateNames(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::kSgd:
      return {};
    case UpdateRule::kMomentum:
    case UpdateRule::kNesterov:
      return {"momentum_buffer"};
    case UpdateRule::kAdam:
    case UpdateRule::kLamb:
      return {"exp_avg", "exp_avg_sq"};
    case UpdateRule::kAmsgrad:
      return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    case UpdateRule::kAdagrad:
      return {"sum"};
    case UpdateRule::kRmsprop:
      return {"square_avg"};
    case UpdateRule::kRmspropMomentum:
      return {"square_avg", "momentum_buffer"};
    case UpdateRule::kRmspropCentered:
      return {"square_avg", "grad_avg"};
    case UpdateRule::kRmspropCenteredMomentum:
      return {"square_avg", "momentum_buffer", "grad_avg"};
    case UpdateRule::kFtrl:
      return {"z", "n"};
  }
  TRIBUTARY_CHECK(false);
}

void PrepareSgd(const OptimizerOptions& options, int64_t step,
                double learning_rate, OptimizerStep* p) {
  p->rate = static_cast<float>(learning_rate);
  p->beta1 = static_cast<float>(options.momentum);
  p->weight1 = step == 1 ? 1.0f : static_cast<float>(1 - options.dampening);
}

void PrepareAverages(const OptimizerOptions& options, OptimizerStep* p) {
  p->beta1 = static_cast<float>(options.beta1);
  p->weight1 = static_cast<float>(1 - options.beta1);
  p->beta2 = static_cast<float>(options.beta2);
  p->weight2 = static_cast<float>(1 - options.beta2);
  p->epsilon = static_cast<float>(options.epsilon);
}

void PrepareAdam(const OptimizerOptions& options, int64_t step,
                 double learning_rate, OptimizerStep* p) {
  PrepareAverages(options, p);
  const double t = static_cast<double>(step);
  p->rate =
      static_cast<float>(learning_rate / (1 - std::pow(options.beta1, t)));
  p->correction2 =
      static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
  if (options.kind == Kind::kAdamW) {
    p->weight_decay = 0;
    p->weight_scale =
        static_cast<float>(1 - learning_rate * options.weight_decay);
  }
}

void PrepareLamb(const OptimizerOptions& options, int64_t step,
                 double learning_rate, OptimizerStep* p) {
  PrepareAverages(options, p);
  p->rate = static_cast<float>(learning_rate);
  if (!options.bias_correction) return;
  const double t = static_cast<double>(step);
  p->correction1 = static_cast<float>(1 / (1 - std::pow(options.beta1, t)));
  p->correction2 =
      static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
}

void PrepareAdagrad(const OptimizerOptions& options, int64_t step,
                    double learning_rate, OptimizerStep* p) {
  const double past = static_cast<double>(step - 1);
  p->rate = static_cast<float>(learning_rate /
                               (1 + past * options.learning_rate_decay));
  p->epsilon = static_cast<float>(options.epsilon);
}

void PrepareRmsprop(const OptimizerOptions& options, double learning_rate,
                    OptimizerStep* p) {
  p->rate = static_cast<float>(learning_rate);
  p->beta1 = static_cast<float>(options.momentum);
  p->beta2 = static_cast<float>(options.alpha);
  p->weight2 = static_cast<float>(1 - options.alpha);
  p->epsilon = static_cast<float>(options.epsilon);
}

void PrepareFtrl(const OptimizerOptions& options, double learning_rate,
                 OptimizerStep* p) {
  // FTRL divides by the learning rate. With a rate of 0, plain SGD leaves the
  // weight unchanged.
  if (learning_rate == 0) {
    p->rule = UpdateRule::kSgd;
    return;
  }
  p->inverse_alpha = static_cast<float>(1 / learning_rate);
  p->ftrl_beta = static_cast<float>(options.ftrl_beta);
  p->l1 = static_cast<float>(options.l1);
  p->l2 = static_cast<float>(options.l2);
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options)
    : options_(options),
      rule_(RuleOf(options)),
      state_names_(StateNames(rule_)) {}

float Optimizer::initial_state(int i) const {
  const std::string& name = state_names_.at(static_cast<size_t>(i));
  const bool accumulator = name == "sum" || name == "n";
  return accumulator ? static_cast<float>(options_.initial_accumulator) : 0.0f;
}

void Optimizer::InitializeState(int64_t n, const float* weight,
                                float* const* state) const {
  for (size_t i = 0; i < state_names_.size(); ++i) {
    std::fill_n(state[i], n, initial_state(static_cast<int>(i)));
  }
  if (rule_ != UpdateRule::kFtrl) return;
  const double slope =
      (options_.ftrl_beta + std::sqrt(options_.initial_accumulator)) /
          options_.learning_rate +
      options_.l2;
  for (int64_t i = 0; i < n; ++i) {
    if (weight[i] == 0) continue;
    const double w = weight[i];
    state[0][i] =
        static_cast<float>(-w * slope - std::copysign(options_.l1, w));
  }
}

OptimizerStep Optimizer::Prepare(int64_t step, double learning_rate,
                                 double gradient_scale) const {
  TRIBUTARY_CHECK(step >= 1);
  OptimizerStep p;
  p.rule = rule_;
  p.gradient_scale = static_cast<float>(gradient_scale);
  p.weight_decay = static_cast<float>(options_.weight_decay);
  switch (options_.kind) {
    case Kind::kSgd:
      PrepareSgd(options_, step, learning_rate, &p);
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
      PrepareAdam(options_, step, learning_rate, &p);
      break;
    case Kind::kAdagrad:
      PrepareAdagrad(options_, step, learning_rate, &p);
      break;
    case Kind::kRmsprop:
      PrepareRmsprop(options_, learning_rate, &p);
      break;
    case Kind::kLamb:
      PrepareLamb(options_, step, learning_rate, &p);
      break;
    case Kind::kFtrl:
      PrepareFtrl(options_, learning_rate, &p);
      break;
  }
  return p;
}

// A running average w moves towards the received value x by plain SGD on (w -
// x)^2 / 2: the gradient is w - x, so w becomes w - rate (w - x).
OptimizerStep Optimizer::StepFor(const ParameterSpec& parameter,
                                 const OptimizerStep& prepared) const {
  if (!parameter.is_running()) {
    return Decays(parameter) ? prepared : WithoutDecay(prepared);
  }
  OptimizerStep step;
  step.rule = UpdateRule::kSgd;
  step.gradient_scale = -1;
  step.weight_decay = 1;
  step.rate = static_cast<float>(RunningRate(parameter));
  return step;
}

OptimizerStep Optimizer::WithoutDecay(OptimizerStep step) {
  step.weight_decay = 0;
  step.weight_scale = 1;
  return step;
}

double Optimizer::GradientSquare(const ParameterSpecs& parameters,
                                 const std::vector<double>& squares) {
  TRIBUTARY_CHECK(parameters.size() == squares.size());
  double square = 0;
  for (size_t p = 0; p < squares.size(); ++p) {
    if (!parameters[p].is_running()) square += squares[p];
  }
  return square;
}

double Optimizer::ClipCoefficient(double max_norm, double square) {
  if (max_norm <= 0) return 1;
  return std::min(1.0, max_norm / (std::sqrt(square) + 1e-6));
}

double Optimizer::TrustRatio(const OptimizerOptions& options,
                             double weight_norm, double direction_norm) {
  if (weight_norm == 0 || direction_norm == 0) return 1;
  double phi = weight_norm;
  if (options.clip_min != 0 || options.clip_max != 0) {
    phi = std::min(std::max(phi, options.clip_min), options.clip_max);
  }
  return phi / direction_norm;
}

void RunningDirection(Ops& ops, int64_t n, const float* average,
                      const float* value, float* direction) {
  const float* const parts[] = {average, value};
  const float weights[] = {1, -1};
  ops.WeightedSum(n, 2, parts, weights, direction);
}

}  // namespace tributary
