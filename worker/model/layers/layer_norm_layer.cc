#include "worker/model/layers/layer_norm_layer.h"

#include <utility>

namespace tributary {

LayerNormLayer::LayerNormLayer(Ops* ops, Shape shape, int64_t features,
                               float epsilon, DeviceArray<float> mean,
                               DeviceArray<float> rstd)
    : Layer(ops, shape, shape),
      features_(features),
      rows_per_sample_(input_size() / features),
      epsilon_(epsilon),
      mean_(std::move(mean)),
      rstd_(std::move(rstd)) {}

ParameterSpecs LayerNormLayer::parameters() const {
  return {{"weight", {features_}}, {"bias", {features_}}};
}

void LayerNormLayer::Bind(absl::Span<float* const> weights,
                          absl::Span<float* const> gradients) {
  weight_ = weights[0];
  bias_ = weights[1];
  d_weight_ = gradients[0];
  d_bias_ = gradients[1];
}

const float* LayerNormLayer::Forward(const ForwardContext&, int64_t rows,
                                     const float* x, float* y) {
  ops()->LayerNorm(rows * rows_per_sample_, features_, epsilon_, x, weight_,
                   bias_, y, mean_.data(), rstd_.data());
  return y;
}

const float* LayerNormLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  if (!pass.accumulate) {
    ops()->Fill(features_, 0, d_weight_);
    ops()->Fill(features_, 0, d_bias_);
  }
  ops()->LayerNormBackward(pass.rows * rows_per_sample_, features_, pass.x,
                           weight_, mean_.data(), rstd_.data(), pass.dy,
                           pass.dx, d_weight_, d_bias_);
  gradient_ready(1);
  gradient_ready(0);
  return pass.dx;
}

}  // namespace tributary
