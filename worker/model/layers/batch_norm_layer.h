#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/model/device_array.h"
#include "worker/model/layer.h"

namespace tributary {

// As torch.nn.BatchNorm1d of [features] and BatchNorm2d of [channels, height,
// width], or of [height, width] with one channel. weight, bias, running_mean,
// running_var: [channels]. While training it normalizes with the batch's
// statistics, in evaluation with the running ones.
//
// What stands in place of the running ones' gradients is the batch's mean and
// unbiased variance, of several batches of a step their mean weighted by
// samples: they are moved where weights are updated (kernels/optimizer.h). A
// batch of one value has no variance: its running variance stays.
class BatchNormLayer final : public Layer {
 public:
  struct Options {
    int64_t channels = 1;
    double momentum = 0.1;
    float epsilon = 1e-5f;
  };

  // ResourceExhausted when the device has no room.
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Ops* ops, Shape shape,
                                                       const Options& options);

  ParameterSpecs parameters() const override;
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  bool ReadsInput() const override { return true; }
  bool InPlace() const override { return false; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  // In the order of the parameters.
  enum { kWeight, kBias, kRunningMean, kRunningVariance, kCount };

  BatchNormLayer(Ops* ops, Shape shape, const Options& options)
      : Layer(ops, shape, shape), options_(options) {}

  BatchNormShape ShapeFor(int64_t rows) const {
    return {rows, options_.channels, input_size() / options_.channels};
  }
  // gradient = [gradient +] share_ times what the batch has.
  void AddStatistics(bool accumulate, const float* batch, float* gradient);

  const Options options_;
  // Of the last forward pass: [channels] each.
  DeviceArray<float> mean_;
  DeviceArray<float> rstd_;
  DeviceArray<float> variance_;
  float share_ = 1;

  float* weights_[kCount] = {};
  float* gradients_[kCount] = {};
};

}  // namespace tributary
