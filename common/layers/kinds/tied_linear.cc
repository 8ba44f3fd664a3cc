// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/match.h"
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"
#include "common/status/quoted.h"

namespace tributary {
namespace {

// y = x weight^T with the weight of an embedding, the head of a language model.
class TiedLinear final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    const v1::TiedLinearSpec& tied = layer.tied_linear();
    if (absl::StrContains(path, ".residual.")) {
      return chain->Error(path,
                          " stands in a residual; it must be a layer of the "
                          "model itself");
    }
    const v1::ModelSpec& model = chain->model();
    if (tied.to() != "0.weight" || model.sequential().empty() ||
        !model.sequential(0).has_embedding()) {
      return chain->Error(path + ".to",
                          " wants the weight of an embedding, which is the "
                          "first layer: \"0.weight\"; got ",
                          Quoted(tied.to()));
    }
    // Its gradient is added to the embedding's. A second head would replace it.
    if (!chain->Tie()) {
      return chain->Error(path,
                          " is tied to 0.weight, as a layer before it; one "
                          "may be");
    }
    const v1::EmbeddingSpec& embedding = model.sequential(0).embedding();
    const LayerWidth& width = chain->width();
    if (width.features != 0 && width.features != embedding.dim()) {
      return chain->Error(path, " takes ", embedding.dim(),
                          " features, the embedding's dim, but ",
                          width.features_path, " makes ", width.features);
    }
    chain->SetFeatures(embedding.tokens(),
                       "model.sequential.0.embedding.tokens");
    return absl::OkStatus();
  }
  std::string TiedTo(const v1::LayerSpec& layer) const override {
    return layer.tied_linear().to();
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const std::string& to = layer.tied_linear().to();
    const auto owner =
        std::find_if(input.earlier->begin(), input.earlier->end(),
                     [&to](const ParameterSpec& p) { return p.name == to; });
    if (owner == input.earlier->end() || owner->shape.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "wants the name of an earlier embedding's weight, got ", Quoted(to)));
    }
    const int64_t dim = owner->shape[1];
    if (input.shape.empty() || input.shape.back() != dim) {
      return WantsSamples(input.shape, "whose last extent is ", dim,
                          ", as that of ", to);
    }
    return ProductNumbers({.shape = input.shape}, dim, owner->shape[0],
                          /*bias=*/false);
  }
  LayerMemory memory() const override { return {.reads_input = true}; }

 private:
  static constexpr FieldRule kRules[] = {
      Required("TiedLinearSpec.to"),
  };
};

}  // namespace

void AddTiedLinear(LayerKinds* kinds) {
  static const TiedLinear tied_linear;
  kinds->Add(v1::LayerSpec::kTiedLinear, &tied_linear);
}

}  // namespace tributary
