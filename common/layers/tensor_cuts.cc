// SPDX-License-Identifier: Apache-2.0
#include "common/layers/tensor_cuts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tributary {

TensorCuts::TensorCuts(const v1::ModelSpec& model, int ranks, bool cut_logits)
    : ranks_(ranks) {
  if (ranks <= 1) return;
  CutAll(model.sequential(), "");
  CutHead(model, cut_logits);
}

void TensorCuts::CutAll(const Layers& layers, const std::string& prefix) {
  for (int i = 0; i < layers.size(); ++i) {
    const std::string name = absl::StrCat(prefix, i);
    if (layers[i].has_residual()) {
      CutAll(layers[i].residual().body(), name + ".body.");
      CutAll(layers[i].residual().shortcut(), name + ".shortcut.");
    }
    const LayerKind* kind = KindOf(layers[i]);
    if (kind == nullptr) continue;
    if (const int second = CutPair(layers, i, prefix); second > 0) {
      i = second;
      continue;
    }
    const int64_t extent = kind->ExtentToCut(layers[i], ranks_);
    if (extent > 0) cuts_[name] = {kind->CutAlone(), extent, kind};
  }
}

int TensorCuts::CutPair(const Layers& layers, int first,
                        const std::string& prefix) {
  const auto product = [&layers](int i) {
    const LayerKind* kind = KindOf(layers[i]);
    return kind == nullptr ? LayerKind::Product() : kind->ProductOf(layers[i]);
  };
  const auto elementwise = [&layers](int i) {
    const LayerKind* kind = KindOf(layers[i]);
    return kind != nullptr && kind->elementwise();
  };
  const int64_t features = product(first).out;
  if (features < ranks_) return -1;
  int second = first + 1;
  while (second < layers.size() && elementwise(second)) ++second;
  if (second == layers.size() || product(second).in != features) return -1;
  const auto set = [&](int layer, LayerCut cut) {
    cuts_[absl::StrCat(prefix, layer)] = {cut, features, KindOf(layers[layer])};
  };
  set(first, LayerCut::kColumns);
  for (int i = first + 1; i < second; ++i) set(i, LayerCut::kWithin);
  set(second, LayerCut::kRows);
  return second;
}

// Cuts tied heads, and decides whether the last layer's outputs stay cut.
void TensorCuts::CutHead(const v1::ModelSpec& model, bool cut_logits) {
  const Layers& layers = model.sequential();
  for (int i = 0; i < layers.size(); ++i) {
    const LayerKind* kind = KindOf(layers[i]);
    const std::string to = kind == nullptr ? "" : kind->TiedTo(layers[i]);
    const auto owner =
        cuts_.find(std::string(absl::StripSuffix(to, ".weight")));
    if (to.empty() || owner == cuts_.end()) continue;
    cuts_[absl::StrCat(i)] = {LayerCut::kGatherColumns, owner->second.extent,
                              kind};
  }
  const auto last = cuts_.find(absl::StrCat(layers.size() - 1));
  if (!cut_logits || last == cuts_.end() ||
      last->second.kind != LayerCut::kGatherColumns) {
    return;
  }
  last->second.kind = LayerCut::kColumns;
  cut_outputs_ = last->second.extent;
}

LayerCut TensorCuts::CutOf(const std::string& layer) const {
  const auto found = cuts_.find(layer);
  return found == cuts_.end() ? LayerCut::kWhole : found->second.kind;
}

int64_t TensorCuts::ExtentOf(const std::string& layer) const {
  const auto found = cuts_.find(layer);
  return found == cuts_.end() ? 0 : found->second.extent;
}

ParameterSlice TensorCuts::SliceOf(const std::string& parameter,
                                   int rank) const {
  // The parameter belongs to the layer with the longest name that begins the
  // parameter's name: no layer with parameters has others within it.
  size_t dot = parameter.rfind('.');
  auto found = cuts_.end();
  while (dot != std::string::npos && found == cuts_.end()) {
    found = cuts_.find(parameter.substr(0, dot));
    if (found != cuts_.end() || dot == 0) break;
    dot = parameter.rfind('.', dot - 1);
  }
  if (found == cuts_.end()) return {};
  const Cut& cut = found->second;
  return cut.layer->SliceOf(parameter.substr(dot + 1), cut.kind,
                            EvenCut(cut.extent, ranks_, rank),
                            EvenCut(cut.extent, ranks_, rank + 1));
}

}  // namespace tributary
