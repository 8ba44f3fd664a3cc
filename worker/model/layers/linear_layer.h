#pragma once

#include "worker/model/layer.h"

namespace tributary {

// y = x w^T + b over the last extent, as torch.nn.Linear.
// weight: [out, in], bias: [out] or none.
class LinearLayer final : public Layer {
 public:
  LinearLayer(Ops* ops, Shape input_shape, Shape output_shape, int64_t in,
              int64_t out, bool bias);

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
  const int64_t in_;
  const int64_t out_;
  const int64_t rows_per_sample_;
  const bool has_bias_;

  float* weight_ = nullptr;
  float* bias_ = nullptr;
  float* d_weight_ = nullptr;
  float* d_bias_ = nullptr;
};

}  // namespace tributary
