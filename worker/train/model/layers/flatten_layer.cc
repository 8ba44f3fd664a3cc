// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// Flattens a sample to one dimension, without moving data.
class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const LayerInit& init) : Layer(init) {}

  const float* Forward(const ForwardContext&, int64_t /*rows*/, const float* x,
                       float* /*y*/) override {
    return x;
  }
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    return pass.dy;
  }
};

}  // namespace

void AddFlattenLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kFlatten, [](const LayerInit& init) -> LayerOr {
    return std::make_unique<FlattenLayer>(init);
  });
}

}  // namespace tributary
