#include "common/layers/tensor_cuts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tributary {
namespace {

bool IsElementwise(const v1::LayerSpec& layer) {
  switch (layer.kind_case()) {
    case v1::LayerSpec::kRelu:
    case v1::LayerSpec::kGelu:
    case v1::LayerSpec::kSigmoid:
    case v1::LayerSpec::kTanh:
    case v1::LayerSpec::kSilu:
    case v1::LayerSpec::kDropout:
      return true;
    default:
      return false;
  }
}

}  // namespace

TensorCuts::TensorCuts(const v1::ModelSpec& model, int ranks, bool cut_logits)
    : ranks_(ranks) {
  if (ranks <= 1) return;
  CutAll(model.sequential(), "");
  CutHead(model, cut_logits);
}

void TensorCuts::CutAll(const Layers& layers, const std::string& prefix) {
  for (int i = 0; i < layers.size(); ++i) {
    const std::string name = absl::StrCat(prefix, i);
    const v1::LayerSpec& layer = layers[i];
    if (layer.has_linear()) {
      const int64_t out = layer.linear().out();
      if (const int second = CutPair(layers, i, prefix); second > 0) {
        i = second;
      } else if (out >= kMinColumns * ranks_) {
        cuts_[name] = {LayerCut::kGatherColumns, out};
      }
    } else if (layer.has_attention()) {
      if (layer.attention().heads() % ranks_ == 0) {
        cuts_[name] = {LayerCut::kHeads, layer.attention().dim()};
      }
    } else if (layer.has_embedding()) {
      if (layer.embedding().tokens() >= ranks_) {
        cuts_[name] = {LayerCut::kVocabulary, layer.embedding().tokens()};
      }
    } else if (layer.has_residual()) {
      CutAll(layer.residual().body(), name + ".body.");
      CutAll(layer.residual().shortcut(), name + ".shortcut.");
    }
  }
}

int TensorCuts::CutPair(const Layers& layers, int first,
                        const std::string& prefix) {
  const int64_t features = layers[first].linear().out();
  int second = first + 1;
  while (second < layers.size() && IsElementwise(layers[second])) ++second;
  if (second == layers.size() || !layers[second].has_linear() ||
      layers[second].linear().in() != features || features < ranks_) {
    return -1;
  }
  const auto set = [&](int layer, LayerCut kind) {
    cuts_[absl::StrCat(prefix, layer)] = {kind, features};
  };
  set(first, LayerCut::kColumns);
  for (int i = first + 1; i < second; ++i) set(i, LayerCut::kWithin);
  set(second, LayerCut::kRows);
  return second;
}

// Tied heads, and what comes of the last layer's outputs.
void TensorCuts::CutHead(const v1::ModelSpec& model, bool cut_logits) {
  const Layers& layers = model.sequential();
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].has_tied_linear()) continue;
    absl::string_view owner = layers[i].tied_linear().to();
    absl::ConsumeSuffix(&owner, ".weight");
    const auto embedding = cuts_.find(std::string(owner));
    if (embedding == cuts_.end()) continue;
    cuts_[absl::StrCat(i)] = {LayerCut::kGatherColumns,
                              embedding->second.extent};
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
  // The longest name of a layer that the parameter's begins with is its own:
  // no layer with parameters has others within it.
  size_t dot = parameter.rfind('.');
  auto found = cuts_.end();
  while (dot != std::string::npos && found == cuts_.end()) {
    found = cuts_.find(parameter.substr(0, dot));
    if (found != cuts_.end() || dot == 0) break;
    dot = parameter.rfind('.', dot - 1);
  }
  if (found == cuts_.end()) return {};
  const Cut& cut = found->second;
  const std::string name = parameter.substr(dot + 1);
  ParameterSlice slice = {.dim = 0,
                          .begin = EvenCut(cut.extent, ranks_, rank),
                          .end = EvenCut(cut.extent, ranks_, rank + 1)};
  switch (cut.kind) {
    case LayerCut::kColumns:
    case LayerCut::kGatherColumns:
    case LayerCut::kVocabulary:
      return slice;
    case LayerCut::kRows:
      slice.dim = 1;
      return name == "bias" ? ParameterSlice() : slice;
    case LayerCut::kHeads:
      if (name == "out_proj.bias") return {};
      if (name == "out_proj.weight") {
        slice.dim = 1;
      } else {
        slice.groups = 3;
      }
      return slice;
    case LayerCut::kWhole:
    case LayerCut::kWithin:
      break;
  }
  return {};
}

}  // namespace tributary
