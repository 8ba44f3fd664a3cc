#include "worker/model/layers/batch_norm_layer.h"

#include <algorithm>
#include <utility>

#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<Layer>> BatchNormLayer::Create(
    Ops* ops, Shape shape, const Options& options) {
  std::unique_ptr<BatchNormLayer> layer(
      new BatchNormLayer(ops, std::move(shape), options));
  for (DeviceArray<float>* array :
       {&layer->mean_, &layer->rstd_, &layer->variance_}) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        *array, DeviceArray<float>::Allocate(ops, options.channels));
  }
  return layer;
}

ParameterSpecs BatchNormLayer::parameters() const {
  const Shape shape = {options_.channels};
  return {{"weight", shape},
          {"bias", shape},
          {.name = "running_mean",
           .shape = shape,
           .running_momentum = options_.momentum},
          {.name = "running_var",
           .shape = shape,
           .running_momentum = options_.momentum}};
}

void BatchNormLayer::Bind(absl::Span<float* const> weights,
                          absl::Span<float* const> gradients) {
  std::copy_n(weights.begin(), int{kCount}, weights_);
  std::copy_n(gradients.begin(), int{kCount}, gradients_);
}

const float* BatchNormLayer::Forward(const ForwardContext& context,
                                     int64_t rows, const float* x, float* y) {
  const BatchNormShape shape = ShapeFor(rows);
  if (!context.training) {
    ops()->BatchNormWith(shape, options_.epsilon, x, weights_[kWeight],
                         weights_[kBias], weights_[kRunningMean],
                         weights_[kRunningVariance], y);
    return y;
  }
  share_ = static_cast<float>(context.step_share);
  ops()->BatchNorm(shape, options_.epsilon, x, weights_[kWeight],
                   weights_[kBias], y, mean_.data(), rstd_.data(),
                   variance_.data());
  if (shape.values() == 1) {
    const float* const running = weights_[kRunningVariance];
    const float one = 1;
    ops()->WeightedSum(shape.channels, 1, &running, &one, variance_.data());
  }
  return y;
}

const float* BatchNormLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  AddStatistics(pass.accumulate, variance_.data(),
                gradients_[kRunningVariance]);
  gradient_ready(kRunningVariance);
  AddStatistics(pass.accumulate, mean_.data(), gradients_[kRunningMean]);
  gradient_ready(kRunningMean);
  ops()->BatchNormBackward(ShapeFor(pass.rows), pass.x, weights_[kWeight],
                           mean_.data(), rstd_.data(), pass.dy,
                           pass.accumulate ? 1 : 0, pass.dx,
                           gradients_[kWeight], gradients_[kBias]);
  gradient_ready(kBias);
  gradient_ready(kWeight);
  return pass.dx;
}

void BatchNormLayer::AddStatistics(bool accumulate, const float* batch,
                                   float* gradient) {
  const float* const parts[] = {batch, gradient};
  const float weights[] = {share_, 1};
  ops()->WeightedSum(options_.channels, accumulate ? 2 : 1, parts, weights,
                     gradient);
}

}  // namespace tributary
