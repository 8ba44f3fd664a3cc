#pragma once

#include "worker/model/layer.h"
#include "worker/model/scratch.h"

namespace tributary {

// As torch.nn.Conv2d. x: [in, height, width], or [height, width] of one
// channel; weight: [out, in / groups, kernel height, kernel width], bias:
// [out] or none.
class Conv2dLayer final : public Layer {
 public:
  Conv2dLayer(Ops* ops, Shape input_shape, const Convolution& convolution,
              bool bias, int64_t max_rows, Scratch* scratch);

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
  const Convolution convolution_;
  const bool has_bias_;
  const Scratch* const scratch_;

  float* weight_ = nullptr;
  float* bias_ = nullptr;
  float* d_weight_ = nullptr;
  float* d_bias_ = nullptr;
};

}  // namespace tributary
