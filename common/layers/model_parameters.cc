// SPDX-License-Identifier: Apache-2.0
#include "common/layers/model_parameters.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/layers/layer_kind.h"

namespace tributary {
namespace {

using Layers = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

void AppendLayers(const Layers& layers, const std::string& prefix,
                  ParameterSpecs* specs);

void AppendLayer(const v1::LayerSpec& layer, const std::string& name,
                 ParameterSpecs* specs) {
  if (layer.has_residual()) {
    AppendLayers(layer.residual().body(), name + "body.", specs);
    AppendLayers(layer.residual().shortcut(), name + "shortcut.", specs);
  }
  const LayerKind* kind = KindOf(layer);
  if (kind == nullptr) return;
  for (LayerParameter& parameter : kind->Parameters(Resolved(layer))) {
    specs->push_back({.name = name + parameter.name,
                      .shape = std::move(parameter.shape),
                      .running_momentum = parameter.running_momentum});
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

}  // namespace tributary
