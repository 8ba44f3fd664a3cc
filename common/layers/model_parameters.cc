#include "common/layers/model_parameters.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace tributary {
namespace {

using Layers = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

void AppendLayers(const Layers& layers, const std::string& prefix,
                  ParameterSpecs* specs);

void AppendConvolution(const v1::Conv2dSpec& conv, const std::string& name,
                       ParameterSpecs* specs) {
  // Layers that no model takes may come by, too.
  const int64_t groups = std::max<int64_t>(1, conv.groups());
  const std::array<int64_t, 2> kernel = PairOf(conv.kernel(), 1);
  specs->push_back({name + "weight",
                    {conv.out(), conv.in() / groups, kernel[0], kernel[1]}});
  if (!conv.has_bias() || conv.bias()) {
    specs->push_back({name + "bias", {conv.out()}});
  }
}

// As torch.nn.BatchNorm2d, without its count of batches.
void AppendBatchNorm(const v1::BatchNormSpec& norm, const std::string& name,
                     ParameterSpecs* specs) {
  const Shape shape = {norm.features()};
  const double momentum = norm.has_momentum() ? norm.momentum() : 0.1;
  specs->push_back({name + "weight", shape});
  specs->push_back({name + "bias", shape});
  for (const char* running : {"running_mean", "running_var"}) {
    specs->push_back(
        {.name = name + running, .shape = shape, .running_momentum = momentum});
  }
}

// As torch.nn.MultiheadAttention.
void AppendAttention(const v1::AttentionSpec& attention,
                     const std::string& name, ParameterSpecs* specs) {
  const int64_t dim = attention.dim();
  specs->push_back({name + "in_proj_weight", {3 * dim, dim}});
  if (!attention.has_qkv_bias() || attention.qkv_bias()) {
    specs->push_back({name + "in_proj_bias", {3 * dim}});
  }
  specs->push_back({name + "out_proj.weight", {dim, dim}});
  specs->push_back({name + "out_proj.bias", {dim}});
}

void AppendLayer(const v1::LayerSpec& layer, const std::string& name,
                 ParameterSpecs* specs) {
  const auto add = [&](const char* parameter, Shape shape) {
    specs->push_back({name + parameter, std::move(shape)});
  };
  switch (layer.kind_case()) {
    case v1::LayerSpec::kLinear:
      add("weight", {layer.linear().out(), layer.linear().in()});
      if (!layer.linear().has_bias() || layer.linear().bias()) {
        add("bias", {layer.linear().out()});
      }
      return;
    case v1::LayerSpec::kLayernorm:
      add("weight", {layer.layernorm().features()});
      return add("bias", {layer.layernorm().features()});
    case v1::LayerSpec::kConv2D:
      return AppendConvolution(layer.conv2d(), name, specs);
    case v1::LayerSpec::kBatchNorm:
      return AppendBatchNorm(layer.batch_norm(), name, specs);
    case v1::LayerSpec::kEmbedding:
      return add("weight",
                 {layer.embedding().tokens(), layer.embedding().dim()});
    case v1::LayerSpec::kPositionEmbedding:
      return add("weight", {layer.position_embedding().length(),
                            layer.position_embedding().dim()});
    case v1::LayerSpec::kAttention:
      return AppendAttention(layer.attention(), name, specs);
    case v1::LayerSpec::kResidual:
      AppendLayers(layer.residual().body(), name + "body.", specs);
      return AppendLayers(layer.residual().shortcut(), name + "shortcut.",
                          specs);
    default:
      return;  // without parameters
  }
}

void AppendLayers(const Layers& layers, const std::string& prefix,
                  ParameterSpecs* specs) {
  for (int i = 0; i < layers.size(); ++i) {
    AppendLayer(layers[i], absl::StrCat(prefix, i, "."), specs);
  }
}

}  // namespace

ParameterSpecs ModelParameters(const v1::ModelSpec& model) {
  ParameterSpecs specs;
  AppendLayers(model.sequential(), "", &specs);
  return specs;
}

std::pair<const v1::LayerSpec*, std::string> LayerOfParameter(
    const v1::ModelSpec& model, absl::string_view name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  const Layers* layers = &model.sequential();
  const v1::LayerSpec* layer = nullptr;
  size_t at = 0;
  while (true) {
    int index = -1;
    TRIBUTARY_CHECK(at < parts.size() && absl::SimpleAtoi(parts[at], &index) &&
                    index >= 0 && index < layers->size());
    layer = &layers->Get(index);
    ++at;
    if (!layer->has_residual()) break;
    TRIBUTARY_CHECK(at < parts.size());
    layers = parts[at] == "body" ? &layer->residual().body()
                                 : &layer->residual().shortcut();
    ++at;
  }
  std::string parameter;
  for (; at < parts.size(); ++at) {
    absl::StrAppend(&parameter, parameter.empty() ? "" : ".", parts[at]);
  }
  return {layer, parameter};
}

std::array<int64_t, 2> PairOf(
    const google::protobuf::RepeatedField<int64_t>& numbers,
    int64_t otherwise) {
  if (numbers.empty()) return {otherwise, otherwise};
  return {numbers[0], numbers[numbers.size() - 1]};
}

}  // namespace tributary
