#include <algorithm>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/model/layers/attention_layer.h"
#include "worker/model/layers/embedding_layers.h"
#include "worker/model/layers/layer_creators.h"

namespace tributary {

LayerOr CreateEmbedding(const v1::EmbeddingSpec& spec, const Shape& input_shape,
                        const LayerOptions& options) {
  constexpr int64_t kMaxTokens = 1 << 24;  // float32 holds the ids exactly
  if (!options.first) {
    return absl::InvalidArgumentError(
        "takes token ids, so it must be the model's first layer");
  }
  if (spec.tokens() < 1 || spec.tokens() > kMaxTokens || spec.dim() < 1 ||
      spec.dim() > kMaxExtent) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokens must be from 1 to ", kMaxTokens,
        " and dim from 1 "
        "to ",
        kMaxExtent, ", got tokens ", spec.tokens(), ", dim ", spec.dim()));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      DeviceArray<int64_t> ids,
      DeviceArray<int64_t>::Allocate(
          options.ops, options.max_rows * NumElements(input_shape)));
  Shape output_shape = input_shape;
  output_shape.push_back(spec.dim());
  const LayerPart part = PartOf(options);
  ClassRange tokens = {0, spec.tokens(), spec.tokens()};
  if (part.cut == LayerCut::kVocabulary) {
    tokens = {part.begin, part.size(), spec.tokens()};
  }
  return JoinParts(std::make_unique<EmbeddingLayer>(
                       options.ops, input_shape, std::move(output_shape),
                       tokens, spec.dim(), std::move(ids)),
                   options, /*bias=*/"");
}

LayerOr CreatePositionEmbedding(const v1::PositionEmbeddingSpec& spec,
                                const Shape& input_shape,
                                const LayerOptions& options) {
  if (input_shape.size() != 2 || input_shape[1] != spec.dim() ||
      input_shape[0] > spec.length()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants samples of shape [positions, dim = ", spec.dim(),
        "] with at most length = ", spec.length(),
        " positions, gets samples of shape ", SampleText(input_shape)));
  }
  return std::make_unique<PositionEmbeddingLayer>(options.ops, input_shape,
                                                  spec.length(), spec.dim());
}

LayerOr CreateAttention(const v1::AttentionSpec& spec, const Shape& input_shape,
                        const LayerOptions& options) {
  if (input_shape.size() != 2 || input_shape[1] != spec.dim()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wants samples of shape [positions, dim = ", spec.dim(),
                     "], gets samples of shape ", SampleText(input_shape)));
  }
  if (spec.heads() < 1 || spec.dim() % spec.heads() != 0 ||
      spec.dim() / spec.heads() > kMaxAttentionDim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "heads must divide dim into parts of at most ", kMaxAttentionDim,
        ", got dim ", spec.dim(), ", heads ", spec.heads()));
  }
  const bool cut = PartOf(options).cut == LayerCut::kHeads;
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<Layer> part,
      AttentionLayer::Create(
          options.ops, input_shape,
          {.heads = cut ? spec.heads() / options.cuts->ranks() : spec.heads(),
           .head_dim = spec.dim() / spec.heads(),
           .causal = spec.causal(),
           .qkv_bias = !spec.has_qkv_bias() || spec.qkv_bias(),
           .out_bias = !cut},
          options.max_rows, options.scratch));
  return JoinParts(std::move(part), options, cut ? "out_proj.bias" : "");
}

LayerOr CreateTiedLinear(const v1::TiedLinearSpec& spec,
                         const Shape& input_shape,
                         const LayerOptions& options) {
  const auto owner =
      std::find_if(options.earlier->begin(), options.earlier->end(),
                   [&](const ParameterSpec& p) { return p.name == spec.to(); });
  if (owner == options.earlier->end() || owner->shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("wants the name of an earlier embedding's weight, got \"",
                     spec.to(), "\""));
  }
  if (input_shape.empty() || input_shape.back() != owner->shape[1]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants samples whose last extent is ", owner->shape[1], ", as that of ",
        spec.to(), ", gets samples of shape ", SampleText(input_shape)));
  }
  Shape output_shape = input_shape;
  output_shape.back() = owner->shape[0];
  return JoinParts(
      std::make_unique<TiedLinearLayer>(options.ops, input_shape,
                                        std::move(output_shape), spec.to()),
      options, /*bias=*/"");
}

}  // namespace tributary
