// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/model/layer_factory.h"
#include "worker/train/model/layers/window_over.h"

namespace tributary {
namespace {

Convolution ConvolutionOf(const LayerInit& init) {
  const v1::Conv2dSpec& spec = init.spec.conv2d();
  Convolution c;
  c.in_channels = spec.in();
  c.out_channels = spec.out();
  c.groups = spec.groups();
  c.window = WindowOver(init.input_shape, WindowOf(spec));
  return c;
}

// Limits a sample's outputs and the matrix of columns of its convolution.
// Computed in double, since the products may reach 2^67.
absl::Status CheckSampleSize(const Convolution& c) {
  const Window& w = c.window;
  const double places =
      static_cast<double>(w.out_height()) * static_cast<double>(w.out_width());
  const double columns = places * static_cast<double>(c.in_channels) *
                         static_cast<double>(w.kernel_height * w.kernel_width);
  const double most =
      std::max(columns, places * static_cast<double>(c.out_channels));
  if (most <= kMaxExtent) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("takes arrays of ", most, " elements for a sample of ",
                   w.height, " x ", w.width, ", wants at most ", kMaxExtent));
}

// As torch.nn.Conv2d. x: [in, height, width], or [height, width] for one
// channel; weight: [out, in / groups, kernel height, kernel width], bias: [out]
// or none.
class Conv2dLayer final : public Layer {
 public:
  static LayerOr Create(const LayerInit& init) {
    const Convolution convolution = ConvolutionOf(init);
    TRIBUTARY_RETURN_IF_ERROR(CheckSampleSize(convolution));
    const LayerOptions& options = init.options;
    options.scratch->Reserve(
        options.ops->ConvolutionScratch(convolution, options.max_rows));
    return std::unique_ptr<Layer>(new Conv2dLayer(init, convolution));
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->Convolve(convolution_, rows, x, weight(0), weight(1), y,
                    scratch_->data());
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    ops()->ConvolveBackward(convolution_, pass.rows, pass.x, weight(0), pass.dy,
                            pass.dx, pass.accumulate ? 1 : 0, gradient(0),
                            gradient(1), scratch_->data());
    if (weight(1) != nullptr) gradient_ready(1);
    gradient_ready(0);
    return pass.dx;
  }

 private:
  Conv2dLayer(const LayerInit& init, const Convolution& convolution)
      : Layer(init),
        convolution_(convolution),
        scratch_(init.options.scratch) {}

  const Convolution convolution_;
  const Scratch* const scratch_;
};

}  // namespace

void AddConv2dLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kConv2D, &Conv2dLayer::Create);
}

}  // namespace tributary
