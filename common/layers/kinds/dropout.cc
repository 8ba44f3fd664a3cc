// SPDX-License-Identifier: Apache-2.0
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

constexpr double kDraw = 10;  // FLOPs of a random number

// torch.nn.Dropout.
class Dropout final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec&,
                                       const LayerInput& input) const override {
    LayerNumbers n;
    n.output_shape = input.shape;
    n.forward_flops = kDraw * Elements(input.shape);
    n.input_gradient_flops = n.forward_flops;
    return n;
  }
  // Backward reads nothing: it draws the same numbers again.
  LayerMemory memory() const override { return {.in_place = true}; }
  bool elementwise() const override { return true; }

 private:
  static constexpr FieldRule kRules[] = {
      Default("DropoutSpec.p", "0.5", kBelowOne),
  };
};

}  // namespace

void AddDropout(LayerKinds* kinds) {
  static const Dropout dropout;
  kinds->Add(v1::LayerSpec::kDropout, &dropout);
}

}  // namespace tributary
