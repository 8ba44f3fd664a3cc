// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// Normalizes the last extent as torch.nn.LayerNorm, or as torch.nn.RMSNorm,
// which has no bias and no mean. weight, bias: [features].
class LayerNormLayer final : public Layer {
 public:
  template <typename Spec>
  static LayerOr Create(const LayerInit& init, const Spec& spec) {
    std::unique_ptr<LayerNormLayer> layer(new LayerNormLayer(
        init, spec.features(), static_cast<float>(spec.epsilon())));
    const int64_t rows = init.options.max_rows * layer->rows_per_sample_;
    if (layer->has_bias()) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          layer->mean_, DeviceArray<float>::Allocate(init.options.ops, rows));
    }
    TRIBUTARY_ASSIGN_OR_RETURN(
        layer->rstd_, DeviceArray<float>::Allocate(init.options.ops, rows));
    return layer;
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->LayerNorm(rows * rows_per_sample_, features_, epsilon_, x, weight(0),
                     weight(1), y, mean_.data(), rstd_.data());
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    if (!pass.accumulate) {
      ops()->Fill(features_, 0, gradient(0));
      if (has_bias()) ops()->Fill(features_, 0, gradient(1));
    }
    ops()->LayerNormBackward(pass.rows * rows_per_sample_, features_, pass.x,
                             weight(0), mean_.data(), rstd_.data(), pass.dy,
                             pass.dx, gradient(0), gradient(1));
    if (has_bias()) gradient_ready(1);
    gradient_ready(0);
    return pass.dx;
  }

 private:
  LayerNormLayer(const LayerInit& init, int64_t features, float epsilon)
      : Layer(init),
        features_(features),
        rows_per_sample_(input_size() / features_),
        epsilon_(epsilon) {}

  bool has_bias() const { return parameters().size() == 2; }

  const int64_t features_;
  const int64_t rows_per_sample_;
  const float epsilon_;
  // Statistics of the last forward pass, one per normalized row.
  DeviceArray<float> mean_;  // RMSNorm has none
  DeviceArray<float> rstd_;
};

}  // namespace

void AddLayerNormLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kLayernorm, [](const LayerInit& init) {
    return LayerNormLayer::Create(init, init.spec.layernorm());
  });
  creators->Add(v1::LayerSpec::kRmsNorm, [](const LayerInit& init) {
    return LayerNormLayer::Create(init, init.spec.rms_norm());
  });
}

}  // namespace tributary
