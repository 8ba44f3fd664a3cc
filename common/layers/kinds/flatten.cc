// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// Joins the extents of a sample into one.
class Flatten final : public LayerKind {
 public:
  absl::Status Check(const v1::LayerSpec&, const std::string&,
                     LayerChain* chain) const override {
    chain->ForgetWidth();
    chain->set_sequence(false);
    return absl::OkStatus();
  }
  bool keeps_features() const override { return true; }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec&,
                                       const LayerInput& input) const override {
    LayerNumbers n;
    n.output_shape = {NumElements(input.shape)};
    return n;
  }
  LayerMemory memory() const override {
    return {.in_place = true, .passes_through = true};
  }
};

}  // namespace

void AddFlatten(LayerKinds* kinds) {
  static const Flatten flatten;
  kinds->Add(v1::LayerSpec::kFlatten, &flatten);
}

}  // namespace tributary
