#include "worker/model/layers/linear_layer.h"

#include <utility>

namespace tributary {

LinearLayer::LinearLayer(Ops* ops, Shape input_shape, Shape output_shape,
                         int64_t in, int64_t out, bool bias)
    : Layer(ops, std::move(input_shape), std::move(output_shape)),
      in_(in),
      out_(out),
      rows_per_sample_(input_size() / in),
      has_bias_(bias) {}

ParameterSpecs LinearLayer::parameters() const {
  ParameterSpecs specs = {{"weight", {out_, in_}}};
  if (has_bias_) specs.push_back({"bias", {out_}});
  return specs;
}

void LinearLayer::Bind(absl::Span<float* const> weights,
                       absl::Span<float* const> gradients) {
  weight_ = weights[0];
  d_weight_ = gradients[0];
  if (has_bias_) {
    bias_ = weights[1];
    d_bias_ = gradients[1];
  }
}

const float* LinearLayer::Forward(const ForwardContext&, int64_t rows,
                                  const float* x, float* y) {
  const int64_t m = rows * rows_per_sample_;
  ops()->Gemm(false, true, m, out_, in_, 1, x, weight_, 0, y);
  if (has_bias_) ops()->AddBias(m, out_, bias_, y);
  return y;
}

const float* LinearLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  const int64_t m = pass.rows * rows_per_sample_;
  const float beta = pass.accumulate ? 1 : 0;
  if (pass.dx != nullptr) {
    ops()->Gemm(false, false, m, in_, out_, 1, pass.dy, weight_, 0, pass.dx);
  }
  if (has_bias_) {
    ops()->ColumnSum(m, out_, pass.dy, beta, d_bias_);
    gradient_ready(1);
  }
  ops()->Gemm(true, false, out_, in_, m, 1, pass.dy, pass.x, beta, d_weight_);
  gradient_ready(0);
  return pass.dx;
}

}  // namespace tributary
