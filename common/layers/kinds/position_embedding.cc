// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// Adds a learned vector to each position. weight: [length, dim].
class PositionEmbedding final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    const int64_t dim = layer.position_embedding().dim();
    TRIBUTARY_RETURN_IF_ERROR(chain->WantFeatures(path + ".dim", dim));
    chain->SetFeatures(dim, path + ".dim");
    return absl::OkStatus();
  }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const v1::PositionEmbeddingSpec& spec = layer.position_embedding();
    return {{"weight", {spec.length(), spec.dim()}, {.std = spec.std()}}};
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const v1::PositionEmbeddingSpec& spec = layer.position_embedding();
    const Shape& shape = input.shape;
    if (shape.size() != 2 || shape[1] != spec.dim() ||
        shape[0] > spec.length()) {
      return WantsSamples(shape, "of shape [positions, dim = ", spec.dim(),
                          "] with at most length = ", spec.length(),
                          " positions");
    }
    LayerNumbers n;
    n.output_shape = shape;
    n.forward_flops = n.backward_flops = Elements(shape);
    return n;
  }
  LayerMemory memory() const override { return {.in_place = true}; }

 private:
  static constexpr FieldRule kRules[] = {
      Required("PositionEmbeddingSpec.length", kExtent),
      Required("PositionEmbeddingSpec.dim", kExtent),
      Default("PositionEmbeddingSpec.std", "1", kNotNegative),
  };
};

}  // namespace

void AddPositionEmbedding(LayerKinds* kinds) {
  static const PositionEmbedding position_embedding;
  kinds->Add(v1::LayerSpec::kPositionEmbedding, &position_embedding);
}

}  // namespace tributary
