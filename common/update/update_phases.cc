// SPDX-License-Identifier: Apache-2.0
#include "common/update/update_phases.h"

#include <cmath>

#include "common/update/grain_sums.h"
#include "kernels/ops.h"

namespace tributary {

int UpdatePhases::FirstNonFinite(const std::vector<double>& squares) {
  for (size_t p = 0; p < squares.size(); ++p) {
    if (!std::isfinite(squares[p])) return static_cast<int>(p);
  }
  return -1;
}

std::vector<UpdatePhases::Move> UpdatePhases::Moves(
    const ParameterSpecs& parameters, int64_t step, const LearningRates& rates,
    const std::vector<double>& weight_squares,
    const std::vector<double>& direction_squares) const {
  const OptimizerSteps prepared = optimizer_.Prepare(step, rates, 1);
  std::vector<Move> moves;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (optimizer_.IsFrozen(parameters[p])) {
      moves.push_back({});  // its direction is 0
      continue;
    }
    const int group = optimizer_.GroupOf(parameters[p]);
    const Optimizer& optimizer = optimizer_.of_group(group);
    if (parameters[p].is_running()) {
      moves.push_back(
          {.rate = static_cast<float>(optimizer.RunningRate(parameters[p])),
           .weight_scale = optimizer.RunningScale(parameters[p])});
      continue;
    }
    const double rate = optimizer.DirectionRate(
        {.step = step,
         .learning_rate = rates[group],
         .weight_norm = std::sqrt(weight_squares[p]),
         .direction_norm = std::sqrt(direction_squares[p]),
         .elements = parameters[p].size()});
    moves.push_back(
        {.rate = static_cast<float>(rate),
         .weight_scale =
             optimizer.StepFor(parameters[p], prepared[group]).weight_scale});
  }
  return moves;
}

void AppendGrainSquares(Ops& ops, const float* x, int64_t n,
                        std::vector<double>* squares) {
  const size_t at = squares->size();
  squares->resize(at + NumGrains(n));
  ops.GrainSquares(n, kGrainElements, x, squares->data() + at);
}

void MakeDirection(Ops& ops, const Optimizer& optimizer,
                   const ParameterSpec& parameter,
                   const OptimizerStep& prepared, int64_t n,
                   const float* gradient, const float* weight, float* direction,
                   float* const* state) {
  if (parameter.is_running()) {
    // The direction w - x of a running average, or -x if x replaces it.
    // Applying it with RunningRate and RunningScale gives the same bits as the
    // step of Optimizer::StepFor.
    const float* const parts[] = {weight, gradient};
    const float weights[] = {optimizer.RunningScale(parameter), -1};
    ops.WeightedSum(n, 2, parts, weights, direction);
    return;
  }
  ops.OptimizerDirection(optimizer.StepFor(parameter, prepared), n, gradient,
                         weight, direction, state);
}

}  // namespace tributary
