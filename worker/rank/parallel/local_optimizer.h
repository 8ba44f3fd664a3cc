// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_memory.h"
#include "common/checkpoint/block_cut.h"
#include "common/checkpoint/planned_checkpoint.h"
#include "common/optimizer/grouped_optimizer.h"
#include "common/optimizer/optimizer_options.h"
#include "common/plan/gradient_ranges.h"
#include "common/update/factored_moments.h"
#include "common/update/update_phases.h"
#include "kernels/ops.h"
#include "worker/rank/collective/device_array.h"

namespace tributary {

// The job's optimizer, run by a worker on its own model with the arithmetic
// that servers use too (common/update), so that the bits are the same. It
// updates only the given ranges and holds state only for them. For one thread
// at a time.
class LocalOptimizer {
 public:
  struct Options {
    Ops* ops = nullptr;  // both must outlive the optimizer
    ParameterMemory* model = nullptr;
    OptimizerOptions optimizer;
    std::vector<ParameterGroup> groups = {};
    double clip_norm = 0;  // 0: no clipping
    bool skip_nonfinite = false;
    std::vector<GradientRange> ranges;
  };

  // ResourceExhausted: no memory for the state.
  static absl::StatusOr<std::unique_ptr<LocalOptimizer>> Create(
      Options options);

  // Sets the state before the first step, for the weights in the model.
  absl::Status Reset();
  // Reads the state of the model's parameters from a checkpoint. Errors as in
  // PlannedCheckpoint. place_in_plan: for each of the model's parameters, its
  // index in the checkpoint's plan.
  absl::Status Restore(const PlannedCheckpoint& checkpoint,
                       const std::vector<int>& place_in_plan);
  const std::vector<std::string>& state_names() const {
    return phases_.optimizer().state_names();
  }
  // CRC-32C of the state of all ranges, in order.
  uint32_t StateChecksum();
  // Passes a snapshot of one range after `steps` steps, in host memory, to
  // `take`. place: the index of the range's parameter in the plan.
  absl::Status Cut(int64_t steps, size_t range, int place,
                   const std::function<void(const BlockCut&)>& take);

  // Counts a step that changes nothing, because the gradient of this parameter
  // is not finite. Logs it at powers of two.
  absl::Status Skip(int64_t step, const std::string& parameter);
  int64_t skipped_steps() const { return skipped_steps_; }
  // The number of the update in a step that begins after `steps` steps, from 1:
  // steps that changed nothing do not count.
  int64_t UpdateAfter(int64_t steps) const {
    return steps + 1 - skipped_steps_;
  }

  const std::vector<GradientRange>& ranges() const { return options_.ranges; }
  const UpdatePhases& phases() const { return phases_; }

  // Returns the scalars of update `number`, counted from 1. rates: one for each
  // group (GroupedOptimizer::RatesAt).
  OptimizerSteps Prepare(int64_t number, const LearningRates& rates,
                         double gradient_scale = 1) const {
    return phases_.optimizer().Prepare(number, rates, gradient_scale);
  }

  // One-pass path: applies a prepared step to one range, block by block, so
  // that each block is still in the cache when it is updated after its check.
  // Returns false at the first block that is not finite, and Internal at a
  // fault of the device. That block and the later ones keep their values.
  absl::StatusOr<bool> UpdateIfFinite(const OptimizerSteps& prepared,
                                      size_t range);
  // Applies a prepared step to all ranges without checking for finite values.
  void UpdateAll(const OptimizerSteps& prepared);

  // Two-phase path (UpdatePhases). Returns the sums of squares of all ranges'
  // grains, in order. Internal: a fault of the device.
  absl::StatusOr<std::vector<double>> GradientSquares();
  // The sums of all ranges' rows and columns (FactoredMoments), in order.
  // squares: for each of the model's parameters, the sum of gradient squares.
  absl::StatusOr<std::vector<double>> FactorSums(
      double gradient_scale, const std::vector<double>& squares);
  // totals: the sums of all rows and columns of each of the model's parameters.
  void UpdateFactors(const OptimizerSteps& prepared,
                     const std::vector<std::vector<double>>& totals);
  // Returns two values for each grain: squares of weight and of direction.
  absl::StatusOr<std::vector<double>> Directions(
      const OptimizerSteps& prepared);
  // moves: one for each of the model's parameters.
  void ApplyDirections(const std::vector<UpdatePhases::Move>& moves);

 private:
  explicit LocalOptimizer(Options options)
      : options_(std::move(options)),
        phases_(options_.optimizer, options_.clip_norm, options_.skip_nonfinite,
                options_.groups) {}

  std::vector<float*> StateOf(size_t range) const;
  OptimizerStep StepFor(size_t range, const OptimizerSteps& prepared) const;
  const ParameterSpec& ParameterOf(const GradientRange& range) const {
    return options_.model->parameters()[range.parameter];
  }
  float* Gradient(const GradientRange& range) const {
    return options_.model->gradient(range.parameter) + range.begin;
  }
  float* Weight(const GradientRange& range) const {
    return options_.model->weight(range.parameter) + range.begin;
  }

  const Options options_;
  const UpdatePhases phases_;
  int64_t skipped_steps_ = 0;
  std::vector<int> group_;    // [range]: the optimizer's group
  std::vector<bool> frozen_;  // [range]: weights and state never change
  // [range][state]; a range with factored moments has no state here
  std::vector<std::vector<DeviceArray<float>>> state_;
  std::vector<std::optional<FactoredMoments>> moments_;  // [range]
  std::vector<DeviceArray<float>> direction_;            // [range]; or empty
};

// Extends `crc` by the CRC-32C of an array on the device.
uint32_t ExtendChecksumOf(Ops& ops, uint32_t crc, const float* data, int64_t n);
inline uint32_t ChecksumOf(Ops& ops, const float* data, int64_t n) {
  return ExtendChecksumOf(ops, 0, data, n);
}

}  // namespace tributary
