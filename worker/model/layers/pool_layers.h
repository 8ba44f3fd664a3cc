#pragma once

#include <utility>

#include "worker/model/device_array.h"
#include "worker/model/layer.h"

namespace tributary {

// As torch.nn.MaxPool2d. x: [channels, height, width] or [height, width].
class MaxPoolLayer final : public Layer {
 public:
  // argmax: one place for each output of the largest batch.
  MaxPoolLayer(Ops* ops, Shape input_shape, Shape output_shape,
               const Window& window, DeviceArray<int32_t> argmax)
      : Layer(ops, std::move(input_shape), std::move(output_shape)),
        window_(window),
        argmax_(std::move(argmax)) {}

  bool InPlace() const override { return false; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  int64_t Planes(int64_t rows) const {
    return rows * output_size() / window_.out_pixels();
  }

  const Window window_;
  const DeviceArray<int32_t> argmax_;
};

// As torch.nn.AvgPool2d, or the mean of each channel.
class AvgPoolLayer final : public Layer {
 public:
  AvgPoolLayer(Ops* ops, Shape input_shape, Shape output_shape,
               const Window& window, bool count_include_pad)
      : Layer(ops, std::move(input_shape), std::move(output_shape)),
        window_(window),
        count_include_pad_(count_include_pad) {}

  bool InPlace() const override { return false; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  int64_t Planes(int64_t rows) const {
    return rows * output_size() / window_.out_pixels();
  }

  const Window window_;
  const bool count_include_pad_;
};

}  // namespace tributary
