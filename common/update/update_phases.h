// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/optimizer/grouped_optimizer.h"
#include "common/optimizer/optimizer_options.h"

namespace tributary {

class Ops;

// The phases of one optimizer step after the mean gradient is known:
//
//   apply                                        most optimizers
//   norm -> apply                                clipping, or skipping of NaN
//   [norm ->] directions -> moves -> apply       LAMB
//   norm -> factors -> directions -> moves       Adafactor
//     -> apply
//
// A phase before an arrow ends in sums over whole tensors. The processes that
// hold slices of the tensors combine their sums (grain_sums.h). Servers and the
// ranks of an all-reduce take the same decisions here, so that their bits are
// the same. Pure: no lock, no wait, no memory of a step.
class UpdatePhases {
 public:
  // A weight becomes weight_scale * weight - rate * direction.
  struct Move {
    float rate = 0;
    float weight_scale = 1;
  };

  // clip_norm: the largest norm of the whole gradient (clip_grad_norm_); 0: no
  // limit.
  UpdatePhases(const OptimizerOptions& options, double clip_norm,
               bool skip_nonfinite, std::vector<ParameterGroup> groups = {})
      : optimizer_(options, std::move(groups)),
        clip_norm_(clip_norm),
        skip_nonfinite_(skip_nonfinite) {}

  const GroupedOptimizer& optimizer() const { return optimizer_; }
  // True when a step needs the gradient's norm: to clip, to find values that
  // are not finite, or to factor.
  bool needs_norm() const {
    return clip_norm_ > 0 || skip_nonfinite_ || optimizer_.factors();
  }
  bool needs_factors() const { return optimizer_.factors(); }
  bool makes_directions() const { return optimizer_.makes_directions(); }
  bool needs_sums() const { return needs_norm() || makes_directions(); }
  bool skips_nonfinite() const { return skip_nonfinite_; }

  // The first parameter whose squares are not finite, or -1.
  static int FirstNonFinite(const std::vector<double>& squares);
  // The factor of the gradient. squares: for each parameter, the sum of the
  // squares of its mean gradient; 0 for a frozen one.
  double Scale(const ParameterSpecs& parameters,
               const std::vector<double>& squares) const {
    return Optimizer::ClipCoefficient(
        clip_norm_, Optimizer::GradientSquare(parameters, squares));
  }
  // How each parameter moves in step `step`, counted from 1. The squares are
  // sums over each parameter's weight and over its direction. rates: of each
  // group.
  std::vector<Move> Moves(const ParameterSpecs& parameters, int64_t step,
                          const LearningRates& rates,
                          const std::vector<double>& weight_squares,
                          const std::vector<double>& direction_squares) const;

 private:
  const GroupedOptimizer optimizer_;
  const double clip_norm_;
  const bool skip_nonfinite_;
};

// ---- the arithmetic of a phase on one slice of a parameter

// Appends the sums of squares of x's grains.
void AppendGrainSquares(Ops& ops, const float* x, int64_t n,
                        std::vector<double>* squares);

// direction = the optimizer's direction for n elements of `parameter`, whose
// state moves on. For a running average: the direction towards `gradient`, the
// batch's value.
void MakeDirection(Ops& ops, const Optimizer& optimizer,
                   const ParameterSpec& parameter,
                   const OptimizerStep& prepared, int64_t n,
                   const float* gradient, const float* weight, float* direction,
                   float* const* state);

}  // namespace tributary
