// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// torch.nn.Embedding: token ids to vectors. weight: [tokens, dim].
class Embedding final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    if (!chain->IsFirst(path)) {
      return chain->Error(path, " must be the first layer: it takes token ids");
    }
    chain->SetFeatures(layer.embedding().dim(), path + ".dim");
    chain->set_sequence(true);
    return absl::OkStatus();
  }
  bool takes_tokens() const override { return true; }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const v1::EmbeddingSpec& spec = layer.embedding();
    return {{"weight", {spec.tokens(), spec.dim()}, {.std = spec.std()}}};
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    if (!input.first) {
      return absl::InvalidArgumentError(
          "takes token ids, so it must be the model's first layer");
    }
    LayerNumbers n;
    n.output_shape = input.shape;
    n.output_shape.push_back(layer.embedding().dim());
    n.forward_flops = n.backward_flops = Elements(n.output_shape);
    n.own_elements = 2 * NumElements(input.shape);  // ids of eight bytes
    return n;
  }
  LayerMemory memory() const override { return {}; }

  LayerCut CutAlone() const override { return LayerCut::kVocabulary; }
  int64_t ExtentToCut(const v1::LayerSpec& layer, int ranks) const override {
    const int64_t tokens = layer.embedding().tokens();
    return tokens >= ranks ? tokens : 0;
  }
  ParameterSlice SliceOf(const std::string& /*parameter*/, LayerCut /*cut*/,
                         int64_t begin, int64_t end) const override {
    return {.dim = 0, .begin = begin, .end = end};
  }

 private:
  static constexpr FieldRule kRules[] = {
      Required("EmbeddingSpec.tokens", kTokens),
      Required("EmbeddingSpec.dim", kExtent),
      Default("EmbeddingSpec.std", "1", kNotNegative),
  };
};

}  // namespace

void AddEmbedding(LayerKinds* kinds) {
  static const Embedding embedding;
  kinds->Add(v1::LayerSpec::kEmbedding, &embedding);
}

}  // namespace tributary
