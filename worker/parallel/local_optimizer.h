#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/optimizer_options.h"
#include "common/checkpoint/block_cut.h"
#include "common/checkpoint/planned_checkpoint.h"
#include "common/plan/gradient_ranges.h"
#include "common/update/update_phases.h"
#include "kernels/ops.h"
#include "worker/model/device_array.h"
#include "worker/model/model.h"

namespace tributary {

// The job's optimizer run by a worker on its own model, with the arithmetic
// that servers use too (common/update). It updates the ranges that it is given,
// and holds state for those alone. For one thread at a time.
class LocalOptimizer {
 public:
  struct Options {
    Ops* ops = nullptr;  // these two outlive it
    Model* model = nullptr;
    OptimizerOptions optimizer;
    double clip_norm = 0;  // 0: none
    bool skip_nonfinite = false;
    std::vector<GradientRange> ranges;
  };

  // ResourceExhausted: no room for the state.
  static absl::StatusOr<std::unique_ptr<LocalOptimizer>> Create(
      Options options);

  // The state before the first step, for the weights in the model.
  absl::Status Reset();
  // The state that a checkpoint holds, of the model's parameters. Errors as
  // PlannedCheckpoint's.
  // place_in_plan: of each of the model's parameters, in the checkpoint's plan.
  absl::Status Restore(const PlannedCheckpoint& checkpoint,
                       const std::vector<int>& place_in_plan);
  const std::vector<std::string>& state_names() const {
    return phases_.optimizer().state_names();
  }
  // CRC-32C of all of it, range after range.
  uint32_t StateChecksum();
  // One of the ranges after `steps` steps, in host memory, as one of parameter
  // `place`.
  absl::Status Cut(int64_t steps, size_t range, int place,
                   const std::function<void(const BlockCut&)>& take);

  const std::vector<GradientRange>& ranges() const { return options_.ranges; }
  const UpdatePhases& phases() const { return phases_; }

  // The scalars of step `number`, from 1.
  OptimizerStep Prepare(int64_t number, double learning_rate,
                        double gradient_scale = 1) const {
    return phases_.optimizer().Prepare(number, learning_rate, gradient_scale);
  }

  // One-pass path: applies a prepared step to one of the ranges, from the
  // model's gradient, block by block: each is in the cache when it is looked at
  // and then updated. False at the first that is not finite, Internal at a
  // fault of the device; it and those behind it stay as they were.
  absl::StatusOr<bool> UpdateIfFinite(const OptimizerStep& prepared,
                                      size_t range);
  // The same to all ranges, whatever is in the gradient.
  void UpdateAll(const OptimizerStep& prepared);

  // Two-phase path: the values of the phases of UpdatePhases for all ranges, in
  // their order, one behind the other. Internal: a fault of the device.
  absl::StatusOr<std::vector<double>> GradientSquares();
  // Two values a grain: weight, direction.
  absl::StatusOr<std::vector<double>> Directions(const OptimizerStep& prepared);
  // rates: one for each of the model's parameters.
  void ApplyDirections(const std::vector<double>& rates);

 private:
  explicit LocalOptimizer(Options options)
      : options_(std::move(options)),
        phases_(options_.optimizer, options_.clip_norm,
                options_.skip_nonfinite) {}

  std::vector<float*> StateOf(size_t range) const;
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
  std::vector<std::vector<DeviceArray<float>>> state_;  // [range][state]
  std::vector<DeviceArray<float>> direction_;           // [range], LAMB's
};

// CRC-32C of a device's array, going on from `crc`.
uint32_t ExtendChecksumOf(Ops& ops, uint32_t crc, const float* data, int64_t n);
inline uint32_t ChecksumOf(Ops& ops, const float* data, int64_t n) {
  return ExtendChecksumOf(ops, 0, data, n);
}

}  // namespace tributary
