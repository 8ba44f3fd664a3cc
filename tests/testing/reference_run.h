// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/optimizer_step.h"
#include "kernels/ops.h"

namespace tributary::testing {

// The result of synchronous training without faults, by its definition in
// docs/consistency.md: in each step, the ranks' gradients are weighted by their
// samples and summed in rank order; then the optimizer runs over whole
// parameters. It does not know servers, blocks, messages or contributions, so
// it is independent of their code. The loops over elements are those of Ops,
// which has its own tests.
class ReferenceRun {
 public:
  using Tensors = std::vector<std::vector<float>>;  // one per parameter

  struct Options {
    ParameterSpecs parameters;
    int workers = 1;
    OptimizerOptions optimizer;
    std::function<double(int64_t step)> learning_rate;  // steps from 0
    double clip_norm = 0;                               // 0: no clipping
    bool skip_nonfinite = false;  // a nonfinite step changes nothing
    Tensors initial;
    int delay =
        0;  // 1: gradients are computed at the weights before the newest
    std::function<uint64_t(uint32_t rank, int64_t step)> samples;
    // Computes a rank's mean gradient at these weights.
    std::function<void(uint32_t rank, int64_t step, const Tensors& weights,
                       Tensors* gradient)>
        gradient;
  };

  // The state after a number of steps.
  struct Version {
    int64_t skipped_steps = 0;  // of the steps before
    Tensors weights;
    // By the optimizer's state names; with a delay, the weights before follow.
    std::vector<Tensors> state;
  };

  explicit ReferenceRun(Options options);

  // Returns the state after `steps` steps, computed on first use.
  const Version& After(int64_t steps);

 private:
  // late: the version at whose weights the gradients are computed.
  Version Next(const Version& now, const Version& late, int64_t step);
  Tensors MeanGradient(const Tensors& weights, int64_t step);
  double Square(const std::vector<float>& tensor);
  // state: the parameter's tensors, expanded as in a checkpoint.
  void MakeFactoredDirection(size_t parameter, const OptimizerStep& prepared,
                             const std::vector<float>& gradient,
                             const std::vector<float*>& state,
                             std::vector<float>* direction);

  const Options options_;
  const std::unique_ptr<Ops> ops_;
  std::vector<std::unique_ptr<Version>> versions_;
};

}  // namespace tributary::testing
