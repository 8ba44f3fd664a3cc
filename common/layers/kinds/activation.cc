// SPDX-License-Identifier: Apache-2.0
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// relu, gelu, sigmoid, tanh, silu: a function of each element.
class Activation final : public LayerKind {
 public:
  // The derivatives of relu, sigmoid and tanh follow from just the output.
  Activation(double flops, bool reads_output)
      : flops_(flops), reads_output_(reads_output) {}

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec&,
                                       const LayerInput& input) const override {
    LayerNumbers n;
    n.output_shape = input.shape;
    n.forward_flops = flops_ * Elements(input.shape);
    n.input_gradient_flops = n.forward_flops;
    return n;
  }
  LayerMemory memory() const override {
    return {.reads_input = !reads_output_,
            .reads_output = reads_output_,
            .in_place = true};
  }
  bool elementwise() const override { return true; }

 private:
  const double flops_;
  const bool reads_output_;
};

}  // namespace

void AddActivation(LayerKinds* kinds) {
  static const Activation relu(/*flops=*/1, /*reads_output=*/true);
  static const Activation sigmoid(kExponential, /*reads_output=*/true);
  static const Activation smooth(kExponential, /*reads_output=*/false);
  kinds->Add(v1::LayerSpec::kRelu, &relu);
  kinds->Add(v1::LayerSpec::kSigmoid, &sigmoid);
  kinds->Add(v1::LayerSpec::kTanh, &sigmoid);
  kinds->Add(v1::LayerSpec::kGelu, &smooth);
  kinds->Add(v1::LayerSpec::kSilu, &smooth);
}

}  // namespace tributary
