// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// As torch.nn.GroupNorm for [features], [channels, height, width], or [height,
// width] with one channel. weight, bias: [channels].
class GroupNormLayer final : public Layer {
 public:
  static LayerOr Create(const LayerInit& init) {
    std::unique_ptr<GroupNormLayer> layer(new GroupNormLayer(init));
    Ops* const ops = init.options.ops;
    const int64_t statistics = init.options.max_rows * layer->groups_;
    TRIBUTARY_ASSIGN_OR_RETURN(layer->mean_,
                               DeviceArray<float>::Allocate(ops, statistics));
    TRIBUTARY_ASSIGN_OR_RETURN(layer->rstd_,
                               DeviceArray<float>::Allocate(ops, statistics));
    if (!layer->parameters().empty()) return layer;
    const int64_t channels = layer->channels_;
    TRIBUTARY_ASSIGN_OR_RETURN(layer->fixed_,
                               DeviceArray<float>::Allocate(ops, 4 * channels));
    ops->Fill(channels, 1, layer->fixed_.data());
    ops->Fill(channels, 0, layer->fixed_.data() + channels);
    return layer;
  }

  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override {
    if (!weights.empty()) return Layer::Bind(weights, gradients);
    float* const fixed = fixed_.data();
    Layer::Bind({fixed, fixed + channels_},
                {fixed + 2 * channels_, fixed + 3 * channels_});
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->GroupNorm(ShapeFor(rows), groups_, epsilon_, x, weight(0), weight(1),
                     y, mean_.data(), rstd_.data());
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    if (!pass.accumulate) {
      ops()->Fill(channels_, 0, gradient(0));
      ops()->Fill(channels_, 0, gradient(1));
    }
    ops()->GroupNormBackward(ShapeFor(pass.rows), groups_, pass.x, weight(0),
                             mean_.data(), rstd_.data(), pass.dy, pass.dx,
                             gradient(0), gradient(1));
    for (int p = static_cast<int>(parameters().size()); p-- > 0;) {
      gradient_ready(p);
    }
    return pass.dx;
  }

 private:
  explicit GroupNormLayer(const LayerInit& init)
      : Layer(init),
        groups_(init.spec.group_norm().groups()),
        channels_(init.spec.group_norm().features()),
        epsilon_(static_cast<float>(init.spec.group_norm().epsilon())) {}

  BatchNormShape ShapeFor(int64_t rows) const {
    return {rows, channels_, input_size() / channels_};
  }

  const int64_t groups_;
  const int64_t channels_;
  const float epsilon_;
  // Statistics of the last forward pass, [rows, groups].
  DeviceArray<float> mean_;
  DeviceArray<float> rstd_;
  // Without parameters (affine: false): weights of 1, biases of 0 and room for
  // their gradients, which nobody reads.
  DeviceArray<float> fixed_;
};

}  // namespace

void AddGroupNormLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kGroupNorm, &GroupNormLayer::Create);
}

}  // namespace tributary
