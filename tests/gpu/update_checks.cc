// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "common/optimizer/optimizer.h"
#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// Also sums more parts than one launch takes, and arrays that are not aligned.
Outputs RunWeightedSum(Ops& ops) {
  Outputs outputs;
  for (int count : {1, 2, 3, 5, 8, 130}) {
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{5003}}) {
      std::vector<std::unique_ptr<Floats>> arrays;
      std::vector<const float*> parts, shifted;
      for (int r = 0; r < count; ++r) {
        arrays.push_back(std::make_unique<Floats>(ops, Numbers(n + 1, r)));
        parts.push_back(arrays.back()->data());
        shifted.push_back(arrays.back()->data() + 1);
      }
      const std::vector<float> weights = Numbers(count, 1000);
      Floats out(ops, Zeros(n + 1));
      ops.WeightedSum(n, count, parts.data(), weights.data(), out.data());
      outputs.push_back(out.Download());
      ops.WeightedSum(n, count, shifted.data(), weights.data(), out.data());
      outputs.push_back(out.Download());
    }
  }
  return outputs;
}

// Three steps from given states; the middle one is clipped.
Outputs RunOptimizer(Ops& ops, const OptimizerOptions& options) {
  Outputs outputs;
  const Optimizer optimizer(options);
  for (int64_t n : {int64_t{0}, int64_t{7}, int64_t{4099}, int64_t{8192}}) {
    std::vector<float> first_weights = Numbers(n, 1);
    std::vector<std::vector<float>> first_states(optimizer.state_names().size(),
                                                 Zeros(n));
    std::vector<float*> pointers;
    for (std::vector<float>& s : first_states) pointers.push_back(s.data());
    optimizer.InitializeState(n, first_weights.data(), pointers.data());

    Floats weights(ops, first_weights), next(ops, Zeros(n));
    std::vector<std::unique_ptr<Floats>> states;
    pointers.clear();
    for (const std::vector<float>& s : first_states) {
      states.push_back(std::make_unique<Floats>(ops, s));
      pointers.push_back(states.back()->data());
    }
    for (int64_t step = 1; step <= 3; ++step) {
      Floats gradient(ops, Numbers(n, 10 + static_cast<uint64_t>(step)));
      const OptimizerStep p =
          optimizer.Prepare(step, options.learning_rate, step == 2 ? 0.3 : 1);
      if (optimizer.makes_directions()) {
        ops.OptimizerDirection(p, n, gradient.data(), weights.data(),
                               next.data(), pointers.data());
        outputs.push_back(next.Download());
        ops.ApplyDirection(n, 0.01f, 0.99f, next.data(), weights.data(),
                           weights.data());
      } else {
        ops.OptimizerUpdate(p, n, gradient.data(), weights.data(), next.data(),
                            pointers.data());
        outputs.push_back(next.Download());
        ops.OptimizerUpdate(p, n, gradient.data(), weights.data(),
                            weights.data(), pointers.data());
      }
    }
    outputs.push_back(weights.Download());
    for (const auto& state : states) outputs.push_back(state->Download());
  }
  return outputs;
}

// Slices of a matrix that begin and end within rows, or hold part of one.
Outputs RunFactoredMoments(Ops& ops) {
  Outputs outputs;
  OptimizerOptions options;
  options.kind = "adafactor";
  const OptimizerStep p = Optimizer(options).Prepare(3, 0.01, 0.7);
  for (const FactoredSlice& slice :
       {FactoredSlice{7, 0, 7 * 300}, FactoredSlice{7, 3, 1000},
        FactoredSlice{1000, 1500, 300}, FactoredSlice{33, 40, 33 * 5}}) {
    Floats gradient(ops, Numbers(slice.size, 5));
    std::vector<double> sums(static_cast<size_t>(slice.rows() + slice.columns));
    ops.FactorSums(slice, p.gradient_scale, 0x1p-40, gradient.data(),
                   sums.data());
    outputs.push_back(sums);
    const std::vector<float> rows(sums.begin(), sums.begin() + slice.rows());
    const std::vector<float> columns(sums.begin() + slice.rows(), sums.end());
    Floats direction(ops, Zeros(slice.size));
    ops.FactoredDirection(slice, p, 0.3f, rows.data(), columns.data(),
                          gradient.data(), direction.data());
    outputs.push_back(direction.Download());
  }
  return outputs;
}

Outputs RunGrainSquares(Ops& ops) {
  Outputs outputs;
  for (int64_t grain : {int64_t{1}, int64_t{32}, int64_t{1000}}) {
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{2077}}) {
      Floats x(ops, Numbers(n, 1));
      std::vector<double> squares(static_cast<size_t>((n + grain - 1) / grain));
      ops.GrainSquares(n, grain, x.data(), squares.data());
      outputs.push_back(squares);
    }
  }
  return outputs;
}

OptimizerOptions Options(const char* kind) {
  OptimizerOptions options;
  options.kind = kind;
  options.weight_decay = 0.01;
  options.initial_accumulator = 0.1;
  options.l1 = 0.05;
  options.l2 = 0.1;
  return options;
}

}  // namespace

void AddUpdateChecks(std::vector<AgreementCheck>* checks) {
  checks->push_back({"weighted sum", 0, RunWeightedSum});
  const auto add = [checks](const char* name, const OptimizerOptions& options) {
    checks->push_back(
        {name, 0, [options](Ops& ops) { return RunOptimizer(ops, options); }});
  };
  OptimizerOptions options = Options("sgd");
  add("sgd", options);
  options.momentum = 0.9;
  options.dampening = 0.1;
  add("sgd, momentum", options);
  options.dampening = 0;
  options.nesterov = true;
  add("sgd, Nesterov", options);
  options = Options("adam");
  add("adam", options);
  options.amsgrad = true;
  add("adam, AMSGrad", options);
  add("adamw", Options("adamw"));
  add("adagrad", Options("adagrad"));
  options = Options("rmsprop");
  add("rmsprop", options);
  options.centered = true;
  add("rmsprop, centered", options);
  options.momentum = 0.9;
  add("rmsprop, centered, momentum", options);
  options.centered = false;
  add("rmsprop, momentum", options);
  add("lamb", Options("lamb"));
  add("lion", Options("lion"));
  add("adafactor, one dimension", Options("adafactor"));
  checks->push_back({"factored moments", 0, RunFactoredMoments});
  add("ftrl", Options("ftrl"));
  checks->push_back({"grain squares", 0, RunGrainSquares});
}

}  // namespace tributary::testing
