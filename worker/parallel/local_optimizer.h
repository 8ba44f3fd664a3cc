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

// The job's optimizer run by a worker on its own model: the servers' arithmetic
// (server/store), so that the bits are the same. It updates the ranges that it
// is given, and holds state for those alone. For one thread at a time.
class LocalOptimizer {
 public:
  struct Options {
    Ops* ops = nullptr;  // these two outlive it
    Model* model = nullptr;
    OptimizerOptions optimizer;
    double clip_norm = 0;                               // 0: none
    std::function<double(int64_t step)> learning_rate;  // steps from 0
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
    return optimizer_.state_names();
  }
  // CRC-32C of all of it, range after range.
  uint32_t StateChecksum();
  // One of the ranges after `steps` steps, in host memory, as one of parameter
  // `place`.
  absl::Status Cut(int64_t steps, size_t range, int place,
                   const std::function<void(const BlockCut&)>& take);

  const std::vector<GradientRange>& ranges() const { return options_.ranges; }
  // A step needs sums over whole tensors before it can be applied.
  bool needs_sums() const {
    return options_.clip_norm > 0 || optimizer_.needs_trust_ratio();
  }

  // One-pass path: applies step `step` to one of the ranges, from the model's
  // gradient, block by block: each is in the cache when it is looked at and
  // then updated. False at the first that is not finite, Internal at a fault of
  // the device; it and those behind it stay as they were.
  absl::StatusOr<bool> UpdateIfFinite(int64_t step, size_t range);

  // Two-phase path. Squares of the gradient's grains of all ranges, in their
  // order; then, with the sums over each parameter of all ranks' grains:
  // UpdateAll, or for LAMB Directions, which answers with two values a grain
  // (weight, direction), and ApplyDirections. Internal: a fault of the device.
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
  // Appends the sums of squares of a range's grains.
  void GrainSquares(const float* x, int64_t n, std::vector<double>* out);

  const Options options_;
  const Optimizer optimizer_;
  std::vector<std::vector<DeviceArray<float>>> state_;  // [range][state]
  std::vector<DeviceArray<float>> direction_;           // [range], LAMB's
};

// CRC-32C of a device's array, going on from `crc`.
uint32_t ExtendChecksumOf(Ops& ops, uint32_t crc, const float* data, int64_t n);
inline uint32_t ChecksumOf(Ops& ops, const float* data, int64_t n) {
  return ExtendChecksumOf(ops, 0, data, n);
}

}  // namespace tributary
