#pragma once

#include "worker/model/device_array.h"
#include "worker/model/layer.h"

namespace tributary {

// Normalizes the last extent, as torch.nn.LayerNorm.
// weight, bias: [features].
class LayerNormLayer final : public Layer {
 public:
  // mean, rstd: one element for each normalized row of the largest batch.
  LayerNormLayer(Ops* ops, Shape shape, int64_t features, float epsilon,
                 DeviceArray<float> mean, DeviceArray<float> rstd);

  ParameterSpecs parameters() const override;
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  bool ReadsInput() const override { return true; }
  bool InPlace() const override { return false; }
  bool AlwaysWritesInputGradient() const override { return true; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  const int64_t features_;
  const int64_t rows_per_sample_;
  const float epsilon_;
  const DeviceArray<float> mean_;
  const DeviceArray<float> rstd_;

  float* weight_ = nullptr;
  float* bias_ = nullptr;
  float* d_weight_ = nullptr;
  float* d_bias_ = nullptr;
};

}  // namespace tributary
