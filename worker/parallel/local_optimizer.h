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
#include "kernels/ops.h"
#include "kernels/optimizer.h"
#include "worker/model/device_array.h"
#include "worker/model/model.h"

namespace tributary {

// The job's optimizer, run by a worker on its own model with the servers'
// arithmetic (server/store), so that the bits are the same. It updates only the
// given ranges and holds state only for them. For one thread at a time.
class LocalOptimizer {
 public:
  struct Options {
    Ops* ops = nullptr;  // both must outlive the optimizer
    Model* model = nullptr;
    OptimizerOptions optimizer;
    double clip_norm = 0;                               // 0: none
    std::function<double(int64_t step)> learning_rate;  // steps from 0
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
    return optimizer_.state_names();
  }
  // CRC-32C of the state of all ranges, in order.
  uint32_t StateChecksum();
  // Passes a snapshot of one range after `steps` steps, in host memory, to
  // `take`. place: the index of the range's parameter in the plan.
  absl::Status Cut(int64_t steps, size_t range, int place,
                   const std::function<void(const BlockCut&)>& take);

  const std::vector<GradientRange>& ranges() const { return options_.ranges; }
  // True when a step needs sums over whole tensors before it can be applied.
  bool needs_sums() const {
    return options_.clip_norm > 0 || optimizer_.needs_trust_ratio();
  }

  // One-pass path: applies step `step` to one range, block by block, so that
  // each block is still in the cache when it is updated after its check. Stops
  // at the first block that is not finite with false, and at a fault of the
  // device with Internal; that block and the later ones keep their values.
  absl::StatusOr<bool> UpdateIfFinite(int64_t step, size_t range);

  // Two-phase path. GradientSquares returns the sums of squares of all ranges'
  // grains, in order. The caller sums them over all ranks for each parameter,
  // then calls UpdateAll; or, for LAMB, Directions, which returns two sums of
  // squares per grain (weight, direction), and then ApplyDirections. Internal:
  // a fault of the device.
  absl::StatusOr<std::vector<double>> GradientSquares();
  void UpdateAll(int64_t step, double square);
  absl::StatusOr<std::vector<double>> Directions(int64_t step, double square);
  void ApplyDirections(int64_t step, const std::vector<double>& weight_squares,
                       const std::vector<double>& direction_squares);
  bool needs_trust_ratio() const { return optimizer_.needs_trust_ratio(); }

 private:
  explicit LocalOptimizer(Options options)
      : options_(std::move(options)), optimizer_(options_.optimizer) {}

  void Update(const OptimizerStep& prepared, size_t range);
  std::vector<float*> StateOf(size_t range) const;
  const ParameterSpec& ParameterOf(const GradientRange& range) const {
    return options_.model->parameters()[range.parameter];
  }
  OptimizerStep StepFor(const GradientRange& range,
                        const OptimizerStep& prepared) const {
    return optimizer_.StepFor(ParameterOf(range), prepared);
  }
  float* Gradient(const GradientRange& range) const {
    return options_.model->gradient(range.parameter) + range.begin;
  }
  float* Weight(const GradientRange& range) const {
    return options_.model->weight(range.parameter) + range.begin;
  }
  // Appends the sums of squares of the grains of x.
  void GrainSquares(const float* x, int64_t n, std::vector<double>* out);

  const Options options_;
  const Optimizer optimizer_;
  std::vector<std::vector<DeviceArray<float>>> state_;  // [range][state]
  std::vector<DeviceArray<float>> direction_;           // [range], only LAMB
};

// Extends `crc` by the CRC-32C of an array on the device.
uint32_t ExtendChecksumOf(Ops& ops, uint32_t crc, const float* data, int64_t n);
inline uint32_t ChecksumOf(Ops& ops, const float* data, int64_t n) {
  return ExtendChecksumOf(ops, 0, data, n);
}

}  // namespace tributary
