#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/optimizer_options.h"
#include "common/base/parameter_spec.h"
#include "kernels/ops.h"

namespace tributary::testing {

// What synchronous training comes to without faults, by its definition in
// docs/consistency.md: for each step the ranks' gradients, weighted by their
// samples and added in rank order, then the optimizer over whole parameters.
// Knows no server, block, message or contribution, so that it can contradict
// them; the loops over elements are Ops', which have tests of their own.
class ReferenceRun {
 public:
  using Tensors = std::vector<std::vector<float>>;  // one per parameter

  struct Options {
    ParameterSpecs parameters;
    int workers = 1;
    OptimizerOptions optimizer;
    std::function<double(int64_t step)> learning_rate;  // steps from 0
    double clip_norm = 0;                               // 0: none
    bool skip_nonfinite = false;  // such a step changes nothing
    Tensors initial;
    std::function<uint64_t(uint32_t rank, int64_t step)> samples;
    // A rank's mean gradient at these weights.
    std::function<void(uint32_t rank, int64_t step, const Tensors& weights,
                       Tensors* gradient)>
        gradient;
  };

  // After so many steps.
  struct Version {
    Tensors weights;
    std::vector<Tensors> state;  // by the optimizer's state names
  };

  explicit ReferenceRun(Options options);

  // Computed when first asked for.
  const Version& After(int64_t steps);

 private:
  Version Next(const Version& now, int64_t step);
  Tensors MeanGradient(const Tensors& weights, int64_t step);
  double Square(const std::vector<float>& tensor);

  const Options options_;
  const std::unique_ptr<Ops> ops_;
  std::vector<std::unique_ptr<Version>> versions_;
};

}  // namespace tributary::testing
