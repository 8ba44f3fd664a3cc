#include "worker/model/layers/conv2d_layer.h"

#include <utility>

namespace tributary {

Conv2dLayer::Conv2dLayer(Ops* ops, Shape input_shape,
                         const Convolution& convolution, bool bias,
                         int64_t max_rows, Scratch* scratch)
    : Layer(ops, std::move(input_shape),
            {convolution.out_channels, convolution.window.out_height(),
             convolution.window.out_width()}),
      convolution_(convolution),
      has_bias_(bias),
      scratch_(scratch) {
  scratch->Reserve(ops->ConvolutionScratch(convolution, max_rows));
}

ParameterSpecs Conv2dLayer::parameters() const {
  const Convolution& c = convolution_;
  ParameterSpecs specs = {{"weight",
                           {c.out_channels, c.in_channels / c.groups,
                            c.window.kernel_height, c.window.kernel_width}}};
  if (has_bias_) specs.push_back({"bias", {c.out_channels}});
  return specs;
}

void Conv2dLayer::Bind(absl::Span<float* const> weights,
                       absl::Span<float* const> gradients) {
  weight_ = weights[0];
  d_weight_ = gradients[0];
  if (has_bias_) {
    bias_ = weights[1];
    d_bias_ = gradients[1];
  }
}

const float* Conv2dLayer::Forward(const ForwardContext&, int64_t rows,
                                  const float* x, float* y) {
  ops()->Convolve(convolution_, rows, x, weight_, bias_, y, scratch_->data());
  return y;
}

const float* Conv2dLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  ops()->ConvolveBackward(convolution_, pass.rows, pass.x, weight_, pass.dy,
                          pass.dx, pass.accumulate ? 1 : 0, d_weight_, d_bias_,
                          scratch_->data());
  if (has_bias_) gradient_ready(1);
  gradient_ready(0);
  return pass.dx;
}

}  // namespace tributary
