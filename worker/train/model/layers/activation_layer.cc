// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

ActivationKind KindOfActivation(const v1::LayerSpec& spec) {
  switch (spec.kind_case()) {
    case v1::LayerSpec::kSigmoid:
      return ActivationKind::kSigmoid;
    case v1::LayerSpec::kTanh:
      return ActivationKind::kTanh;
    case v1::LayerSpec::kSilu:
      return ActivationKind::kSilu;
    case v1::LayerSpec::kGelu:
      return spec.gelu().approximate() == v1::GeluSpec::TANH
                 ? ActivationKind::kGeluTanh
                 : ActivationKind::kGeluErf;
    default:
      return ActivationKind::kRelu;
  }
}

// relu, gelu (erf, tanh), sigmoid, tanh, silu.
class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(const LayerInit& init)
      : Layer(init), kind_(KindOfActivation(init.spec)) {}

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->Activation(kind_, rows * input_size(), x, y);
    return y;
  }
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    ops()->ActivationBackward(kind_, pass.rows * input_size(), pass.x, pass.y,
                              pass.dy, pass.dx);
    return pass.dx;
  }

 private:
  const ActivationKind kind_;
};

}  // namespace

void AddActivationLayer(LayerCreators* creators) {
  for (const auto kind_case :
       {v1::LayerSpec::kRelu, v1::LayerSpec::kGelu, v1::LayerSpec::kSigmoid,
        v1::LayerSpec::kTanh, v1::LayerSpec::kSilu}) {
    creators->Add(kind_case, [](const LayerInit& init) -> LayerOr {
      return std::make_unique<ActivationLayer>(init);
    });
  }
}

}  // namespace tributary
