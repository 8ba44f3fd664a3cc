// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_kind.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {

#define TRIBUTARY_LAYER_KINDS(Add) void Add(LayerKinds* kinds);
#include "common/layers/layer_kinds.inc"
#undef TRIBUTARY_LAYER_KINDS

namespace {

const LayerKinds& AllKinds() {
  static const LayerKinds* const kinds = [] {
    auto* made = new LayerKinds;
#define TRIBUTARY_LAYER_KINDS(Add) Add(made);
#include "common/layers/layer_kinds.inc"
#undef TRIBUTARY_LAYER_KINDS
    return made;
  }();
  return *kinds;
}

// The message of the layer's kind.
google::protobuf::Message* MessageOf(v1::LayerSpec* layer) {
  const auto* field =
      v1::LayerSpec::descriptor()->FindFieldByNumber(layer->kind_case());
  return layer->GetReflection()->MutableMessage(layer, field);
}

}  // namespace

const LayerKind* KindOf(const v1::LayerSpec& layer) {
  return AllKinds().Find(layer.kind_case());
}

std::vector<FieldRule> LayerRules() {
  std::vector<FieldRule> rules;
  for (const LayerKind* kind : AllKinds().by_number()) {
    if (kind == nullptr) continue;
    rules.insert(rules.end(), kind->rules().begin(), kind->rules().end());
  }
  return rules;
}

std::string LayerKindName(const v1::LayerSpec& layer) {
  const auto* field =
      v1::LayerSpec::descriptor()->FindFieldByNumber(layer.kind_case());
  return field == nullptr ? "?" : field->name();
}

void ResolveLayer(v1::LayerSpec* layer) {
  if (layer->has_residual()) {
    for (v1::LayerSpec& l : *layer->mutable_residual()->mutable_body()) {
      ResolveLayer(&l);
    }
    for (v1::LayerSpec& l : *layer->mutable_residual()->mutable_shortcut()) {
      ResolveLayer(&l);
    }
  }
  const LayerKind* kind = KindOf(*layer);
  if (kind == nullptr) return;
  FillDefaults(kind->rules(), MessageOf(layer));
  kind->FillDependentDefaults(layer);
}

absl::Status CheckLayerFields(const v1::LayerSpec& layer) {
  const LayerKind* kind = KindOf(layer);
  if (kind == nullptr) return absl::OkStatus();
  const auto* field =
      v1::LayerSpec::descriptor()->FindFieldByNumber(layer.kind_case());
  return CheckRanges(kind->rules(),
                     layer.GetReflection()->GetMessage(layer, field));
}

void ResolveLayers(v1::ModelSpec* model) {
  for (v1::LayerSpec& layer : *model->mutable_sequential()) {
    ResolveLayer(&layer);
  }
}

v1::LayerSpec Resolved(const v1::LayerSpec& layer) {
  v1::LayerSpec resolved = layer;
  ResolveLayer(&resolved);
  return resolved;
}

InitialValues UniformOfFanIn(double fan_in) {
  return {.bound = 1 / std::sqrt(fan_in)};
}

std::string SampleText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace tributary
