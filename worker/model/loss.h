#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "tributary/v1/job.pb.h"
#include "worker/model/device_array.h"
#include "worker/model/tensor_group.h"

namespace tributary {

// What the samples of a batch should give, in host memory: a class for each, or
// for each position of each (cross entropy), or a number for each output (the
// other losses).
struct LossTargets {
  const int64_t* labels = nullptr;  // [rows, positions]
  const float* values = nullptr;    // [rows, outputs]
};

// Compares logits with targets on the device, and computes the gradient where
// backward begins. A sample's loss is the mean over its positions or outputs,
// so that a batch's mean is PyTorch's. For one thread.
class Loss {
 public:
  struct Options {
    Ops* ops = nullptr;     // outlives the loss
    int64_t max_rows = 0;   // of one batch
    int64_t outputs = 0;    // of the model, at each position
    int64_t positions = 1;  // of a sample; more than one for sequences
    // Where the model's outputs are cut by classes over the ranks of a group,
    // Model::output_cut(): `outputs` are this rank's and all ranks call
    // together, for cross entropy alone. Every rank gets the losses of all
    // classes.
    OutputCut cut;
  };

  // InvalidArgument when a constant is out of range.
  static absl::StatusOr<std::unique_ptr<Loss>> Create(const v1::LossSpec& spec,
                                                      const Options& options);

  // Enqueues the losses of `rows` samples. logits: [rows, outputs] on the
  // device. InvalidArgument when a target is missing or out of range; the
  // group's error when a rank of it is gone.
  absl::Status Evaluate(const float* logits, const LossTargets& targets,
                        int64_t rows);

  // The same, and the gradient of scale times the summed loss: with scale = 1 /
  // (this rank's samples in the whole step) the gradients of a step's
  // micro-batches add up to that of the mean. Returns it, as the logits on
  // the device, valid until the next call.
  absl::StatusOr<const float*> Differentiate(const float* logits,
                                             const LossTargets& targets,
                                             int64_t rows, double scale);

  // Waits for the device; the last call's losses, summed in double in row
  // order. Internal when the device reports a fault.
  absl::StatusOr<double> Sum();

  // Of the outputs that it takes.
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

  const Kind kind_;
  Ops* const ops_;
  const int64_t max_rows_;
  const int64_t outputs_;
  const int64_t positions_;
  const int64_t values_per_row_;  // targets and losses
  const OutputCut cut_;
  float label_smoothing_ = 0;
  float pos_weight_ = 1;

  DeviceArray<float> d_logits_;
  DeviceArray<float> parts_;     // [ranks, rows, kCrossEntropyPart]
  DeviceArray<float> losses_;    // [rows, positions] or [rows, outputs]
  DeviceArray<int64_t> labels_;  // where the device cannot read the host
  DeviceArray<float> values_;    // likewise
  int64_t rows_ = 0;             // of the last call
  std::vector<float> host_losses_;
};

}  // namespace tributary
