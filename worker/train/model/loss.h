// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "tributary/v1/job.pb.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/tensor_group.h"

namespace tributary {

// The targets of a batch, in host memory: a class per sample or per position of
// a sample (cross entropy), or a number per output (other losses).
struct LossTargets {
  const int64_t* labels = nullptr;  // [rows, positions]
  const float* values = nullptr;    // [rows, outputs]
};

// Compares logits with targets on the device and computes the gradient of the
// logits. A sample's loss is the mean over its positions or outputs, so that
// the mean over a batch is PyTorch's. With class weights each sample's or
// position's loss is multiplied by its class's weight. The mean divides by the
// number of losses (PyTorch: by the sum of weights), so the mean of a batch
// does not depend on how it is split. For one thread.
class Loss {
 public:
  struct Options {
    Ops* ops = nullptr;     // must outlive the loss
    int64_t max_rows = 0;   // per batch
    int64_t outputs = 0;    // of the model, per position
    int64_t positions = 1;  // per sample; above 1 for sequences
    // Set when the model's outputs are split by class over a group's ranks
    // (Model::output_cut()). Then `outputs` are those of this rank, all ranks
    // must call together, and only cross entropy is supported. Every rank gets
    // the losses over all classes.
    OutputCut cut;
  };

  // InvalidArgument when a constant is out of range, when there is not one
  // class weight for each class, and for `balanced`, whose weights only the
  // data give (WithClassWeights).
  static absl::StatusOr<std::unique_ptr<Loss>> Create(const v1::LossSpec& spec,
                                                      const Options& options);

  // Enqueues the losses of `rows` samples. logits: [rows, outputs] on the
  // device. InvalidArgument when a target is missing or out of range. The
  // group's error when one of its ranks is gone.
  absl::Status Evaluate(const float* logits, const LossTargets& targets,
                        int64_t rows);

  // The same, and returns the gradient of scale * (summed loss), shaped like
  // the logits, on the device, valid until the next call. With scale = 1 /
  // (this rank's samples in the whole step), the gradients of a step's
  // micro-batches add up to the gradient of the mean.
  absl::StatusOr<const float*> Differentiate(const float* logits,
                                             const LossTargets& targets,
                                             int64_t rows, double scale);

  // Waits for the device and returns the sum of the last call's losses, added
  // in double in row order. Internal when the device reports a fault.
  absl::StatusOr<double> Sum();

  // The split of the logits that this loss takes.
  const OutputCut& cut() const { return cut_; }

 private:
  enum class Kind { kCrossEntropy, kBceWithLogits, kSquaredError };

  Loss(Kind kind, const Options& options);

  int64_t classes() const {
    return cut_.group == nullptr ? outputs_ : cut_.range.total;
  }
  void ComputeCut(const float* logits, const int64_t* labels, int64_t count,
                  float factor, float* d_logits);
  absl::Status Compute(const float* logits, const LossTargets& targets,
                       int64_t rows, double scale, float* d_logits);
  absl::Status CheckTargets(const LossTargets& targets, int64_t rows) const;
  absl::Status Allocate();
  absl::Status TakeClassWeights(const v1::CrossEntropySpec& spec);

  const Kind kind_;
  Ops* const ops_;
  const int64_t max_rows_;
  const int64_t outputs_;
  const int64_t positions_;
  const int64_t values_per_row_;  // number of targets and losses
  const OutputCut cut_;
  float label_smoothing_ = 0;
  float pos_weight_ = 1;
  DeviceArray<float> class_weights_;  // [classes()], or empty

  DeviceArray<float> d_logits_;
  DeviceArray<float> parts_;     // [ranks, rows, kCrossEntropyPart]
  DeviceArray<float> losses_;    // [rows, positions] or [rows, outputs]
  DeviceArray<int64_t> labels_;  // only if the device cannot read host memory
  DeviceArray<float> values_;    // the same for values
  int64_t rows_ = 0;             // of the last call
  std::vector<float> host_losses_;
};

}  // namespace tributary
