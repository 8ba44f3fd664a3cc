// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// As torch.nn.BatchNorm1d for [features], and BatchNorm2d for [channels,
// height, width] or for [height, width] with one channel. weight, bias,
// running_mean, running_var: [channels]. Normalizes with the batch's statistics
// in training, and with the running statistics in evaluation.
//
// The gradients of the running statistics hold the batch's mean and unbiased
// variance instead; over several batches of a step, their mean weighted by
// samples. The optimizer then moves the running statistics
// (common/optimizer/optimizer.h). A batch with one value per channel has no
// variance and keeps the running variance.
class BatchNormLayer final : public Layer {
 public:
  static LayerOr Create(const LayerInit& init) {
    std::unique_ptr<BatchNormLayer> layer(new BatchNormLayer(init));
    for (DeviceArray<float>* array :
         {&layer->mean_, &layer->rstd_, &layer->variance_}) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          *array,
          DeviceArray<float>::Allocate(init.options.ops, layer->channels_));
    }
    return layer;
  }

  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override {
    const BatchNormShape shape = ShapeFor(rows);
    if (!context.training) {
      ops()->BatchNormWith(shape, epsilon_, x, weight(kWeight), weight(kBias),
                           weight(kRunningMean), weight(kRunningVariance), y);
      return y;
    }
    share_ = static_cast<float>(context.step_share);
    ops()->BatchNorm(shape, epsilon_, x, weight(kWeight), weight(kBias), y,
                     mean_.data(), rstd_.data(), variance_.data());
    if (shape.values() == 1) {
      const float* const running = weight(kRunningVariance);
      const float one = 1;
      ops()->WeightedSum(shape.channels, 1, &running, &one, variance_.data());
    }
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    AddStatistics(pass.accumulate, variance_.data(),
                  gradient(kRunningVariance));
    gradient_ready(kRunningVariance);
    AddStatistics(pass.accumulate, mean_.data(), gradient(kRunningMean));
    gradient_ready(kRunningMean);
    ops()->BatchNormBackward(ShapeFor(pass.rows), pass.x, weight(kWeight),
                             mean_.data(), rstd_.data(), pass.dy,
                             pass.accumulate ? 1 : 0, pass.dx,
                             gradient(kWeight), gradient(kBias));
    gradient_ready(kBias);
    gradient_ready(kWeight);
    return pass.dx;
  }

 private:
  // In the order of the parameters.
  enum { kWeight, kBias, kRunningMean, kRunningVariance };

  explicit BatchNormLayer(const LayerInit& init)
      : Layer(init),
        channels_(init.spec.batch_norm().features()),
        epsilon_(static_cast<float>(init.spec.batch_norm().epsilon())) {}

  BatchNormShape ShapeFor(int64_t rows) const {
    return {rows, channels_, input_size() / channels_};
  }

  // gradient = share_ * batch, plus the old gradient with `accumulate`.
  void AddStatistics(bool accumulate, const float* batch, float* gradient) {
    const float* const parts[] = {batch, gradient};
    const float weights[] = {share_, 1};
    ops()->WeightedSum(channels_, accumulate ? 2 : 1, parts, weights, gradient);
  }

  const int64_t channels_;
  const float epsilon_;
  // Statistics of the last forward pass, [channels] each.
  DeviceArray<float> mean_;
  DeviceArray<float> rstd_;
  DeviceArray<float> variance_;
  float share_ = 1;
};

}  // namespace

void AddBatchNormLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kBatchNorm, &BatchNormLayer::Create);
}

}  // namespace tributary
