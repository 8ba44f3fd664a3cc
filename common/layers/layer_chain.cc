// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_chain.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/layers/layer_kind.h"

namespace tributary {
namespace {

constexpr int kMaxLayers = 10'000;

}  // namespace

absl::Status LayerChain::Check() {
  return EnterAll("model.sequential", model_.sequential());
}

bool LayerChain::IsFirst(const std::string& path) const {
  return path == absl::StrCat("model.sequential.0.",
                              LayerKindName(model_.sequential(0)));
}

absl::Status LayerChain::EnterAll(const std::string& path,
                                  const Layers& layers) {
  num_layers_ += layers.size();
  if (num_layers_ > kMaxLayers) {
    return Error("model.sequential", " wants at most ", kMaxLayers,
                 " layers, got ", num_layers_);
  }
  for (int i = 0; i < layers.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(Enter(absl::StrCat(path, ".", i), layers[i]));
  }
  return absl::OkStatus();
}

absl::Status LayerChain::Enter(const std::string& path,
                               const v1::LayerSpec& layer) {
  if (layer.has_residual()) {
    return EnterResidual(path + ".residual", layer.residual());
  }
  const LayerKind* kind = KindOf(layer);
  if (kind == nullptr) return absl::OkStatus();
  return kind->Check(layer, absl::StrCat(path, ".", LayerKindName(layer)),
                     this);
}

absl::Status LayerChain::EnterResidual(const std::string& path,
                                       const v1::ResidualSpec& residual) {
  const LayerWidth input = width_;
  TRIBUTARY_RETURN_IF_ERROR(EnterAll(path + ".body", residual.body()));
  const LayerWidth body = std::exchange(width_, input);
  TRIBUTARY_RETURN_IF_ERROR(EnterAll(path + ".shortcut", residual.shortcut()));
  const auto differ = [](int64_t a, int64_t b) {
    return a != 0 && b != 0 && a != b;
  };
  const char* what =
      residual.shortcut().empty() ? "its input has " : "the shortcut makes ";
  if (differ(body.features, width_.features)) {
    return Error(path, ".body makes ", body.features, " features, but ", what,
                 width_.features);
  }
  if (differ(body.channels, width_.channels)) {
    return Error(path, ".body makes ", body.channels, " channels, but ", what,
                 width_.channels);
  }
  if (body.features != 0 || body.channels != 0) width_ = body;
  return absl::OkStatus();
}

absl::Status LayerChain::WantFeatures(const std::string& path,
                                      int64_t wanted) const {
  if (width_.features == 0 || width_.features == wanted) {
    return absl::OkStatus();
  }
  return Error(path, " is ", wanted, ", but ", width_.features_path, " makes ",
               width_.features, " features");
}

absl::Status LayerChain::WantChannels(const std::string& path,
                                      int64_t wanted) const {
  if (width_.channels == 0 || width_.channels == wanted) {
    return absl::OkStatus();
  }
  return Error(path, " is ", wanted, ", but ", width_.channels_path, " makes ",
               width_.channels, " channels");
}

void LayerChain::SetChannels(int64_t channels, std::string path) {
  width_ = LayerWidth();
  width_.channels = channels;
  width_.channels_path = std::move(path);
}

void LayerChain::SetFeatures(int64_t features, std::string path) {
  width_ = LayerWidth();
  width_.features = features;
  width_.features_path = std::move(path);
}

}  // namespace tributary
