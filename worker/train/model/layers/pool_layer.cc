// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer_factory.h"
#include "worker/train/model/layers/window_over.h"

namespace tributary {
namespace {

int64_t PlanesOf(const Layer& layer, const Window& window, int64_t rows) {
  return rows * layer.output_size() / window.out_pixels();
}

// As torch.nn.MaxPool2d. x: [channels, height, width] or [height, width].
class MaxPoolLayer final : public Layer {
 public:
  static LayerOr Create(const LayerInit& init) {
    std::unique_ptr<MaxPoolLayer> layer(new MaxPoolLayer(init));
    TRIBUTARY_ASSIGN_OR_RETURN(
        layer->argmax_,
        DeviceArray<int32_t>::Allocate(
            init.options.ops, init.options.max_rows * layer->output_size()));
    return layer;
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->MaxPool(window_, PlanesOf(*this, window_, rows), x, y,
                   argmax_.data());
    return y;
  }
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    ops()->MaxPoolBackward(window_, PlanesOf(*this, window_, pass.rows),
                           pass.dy, argmax_.data(), pass.dx);
    return pass.dx;
  }

 private:
  explicit MaxPoolLayer(const LayerInit& init)
      : Layer(init),
        window_(WindowOver(init.input_shape, WindowOf(init.spec.max_pool()))) {}

  const Window window_;
  DeviceArray<int32_t> argmax_;  // per output of the last forward pass
};

// As torch.nn.AvgPool2d. With one window per plane it is global average
// pooling.
class AvgPoolLayer final : public Layer {
 public:
  AvgPoolLayer(const LayerInit& init, const Window& window,
               bool count_include_pad)
      : Layer(init), window_(window), count_include_pad_(count_include_pad) {}

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->AveragePool(window_, count_include_pad_,
                       PlanesOf(*this, window_, rows), x, y);
    return y;
  }
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    ops()->AveragePoolBackward(window_, count_include_pad_,
                               PlanesOf(*this, window_, pass.rows), pass.dy,
                               pass.dx);
    return pass.dx;
  }

 private:
  const Window window_;
  const bool count_include_pad_;
};

LayerOr CreateAvgPool(const LayerInit& init) {
  const v1::AvgPoolSpec& spec = init.spec.avg_pool();
  return std::make_unique<AvgPoolLayer>(
      init, WindowOver(init.input_shape, WindowOf(spec)),
      spec.count_include_pad());
}

// One window over the whole plane.
LayerOr CreateGlobalAvgPool(const LayerInit& init) {
  Window w;
  w.height = w.kernel_height = w.stride_height =
      init.input_shape[init.input_shape.size() - 2];
  w.width = w.kernel_width = w.stride_width = init.input_shape.back();
  return std::make_unique<AvgPoolLayer>(init, w, /*count_include_pad=*/true);
}

}  // namespace

void AddPoolLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kMaxPool, &MaxPoolLayer::Create);
  creators->Add(v1::LayerSpec::kAvgPool, &CreateAvgPool);
  creators->Add(v1::LayerSpec::kGlobalAvgPool, &CreateGlobalAvgPool);
}

}  // namespace tributary
