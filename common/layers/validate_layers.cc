#include "common/layers/validate_layers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/layers/model_parameters.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Numbers = google::protobuf::RepeatedField<int64_t>;

constexpr int kMaxLayers = 10'000;
constexpr int64_t kMaxHeadDim = 256;  // kernels/ops.h

absl::Status CheckPair(const Places& places, const std::string& path,
                       const Numbers& numbers) {
  if (numbers.size() <= 2) return absl::OkStatus();
  return places.Error(path, path, " wants one number or [height, width], got ",
                      numbers.size(), " numbers");
}

// PyTorch's rule: a window always sees something of the image.
template <typename Pool>
absl::Status CheckPool(const Places& places, const std::string& path,
                       const Pool& pool) {
  TRIBUTARY_RETURN_IF_ERROR(CheckPair(places, path + ".kernel", pool.kernel()));
  TRIBUTARY_RETURN_IF_ERROR(CheckPair(places, path + ".stride", pool.stride()));
  TRIBUTARY_RETURN_IF_ERROR(
      CheckPair(places, path + ".padding", pool.padding()));
  const std::array<int64_t, 2> kernel = PairOf(pool.kernel(), 1);
  const std::array<int64_t, 2> padding = PairOf(pool.padding(), 0);
  for (int i = 0; i < 2; ++i) {
    if (padding[i] <= kernel[i] / 2) continue;
    return places.Error(path + ".padding", path,
                        ".padding must be at most half the kernel, ",
                        kernel[i] / 2, ", got ", padding[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckAttention(const Places& places, const std::string& path,
                            const v1::AttentionSpec& attention) {
  const int64_t dim = attention.dim(), heads = attention.heads();
  if (dim % heads != 0) {
    return places.Error(path + ".heads", path, ".heads must divide dim, ", dim,
                        ", got ", heads);
  }
  if (dim / heads > kMaxHeadDim) {
    return places.Error(path + ".heads", path, ".heads must be at least ",
                        (dim + kMaxHeadDim - 1) / kMaxHeadDim,
                        ", since a head has at most ", kMaxHeadDim,
                        " dimensions; got ", heads);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LayerChain::Check() {
  return EnterAll("model.sequential", model_.sequential());
}

absl::Status LayerChain::EnterAll(const std::string& path,
                                  const Layers& layers) {
  num_layers_ += layers.size();
  if (num_layers_ > kMaxLayers) {
    return places_.Error("model.sequential", "model.sequential wants at most ",
                         kMaxLayers, " layers, got ", num_layers_);
  }
  for (int i = 0; i < layers.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(Enter(absl::StrCat(path, ".", i), layers[i]));
  }
  return absl::OkStatus();
}

absl::Status LayerChain::Enter(const std::string& path,
                               const v1::LayerSpec& layer) {
  switch (layer.kind_case()) {
    case v1::LayerSpec::kLinear:
      TRIBUTARY_RETURN_IF_ERROR(
          WantFeatures(path + ".linear.in", layer.linear().in()));
      SetFeatures(layer.linear().out(), path + ".linear.out");
      return absl::OkStatus();
    case v1::LayerSpec::kLayernorm: {
      const std::string features = path + ".layernorm.features";
      TRIBUTARY_RETURN_IF_ERROR(
          WantFeatures(features, layer.layernorm().features()));
      SetFeatures(layer.layernorm().features(), features);
      return absl::OkStatus();
    }
    case v1::LayerSpec::kConv2D:
      return EnterConvolution(path + ".conv2d", layer.conv2d());
    case v1::LayerSpec::kMaxPool:
      width_.features = 0;
      return CheckPool(places_, path + ".max_pool", layer.max_pool());
    case v1::LayerSpec::kAvgPool:
      width_.features = 0;
      return CheckPool(places_, path + ".avg_pool", layer.avg_pool());
    case v1::LayerSpec::kGlobalAvgPool:
      SetFeatures(width_.channels, width_.channels_path);
      return absl::OkStatus();
    case v1::LayerSpec::kFlatten:
      width_ = LayerWidth();
      sequence_ = false;
      return absl::OkStatus();
    case v1::LayerSpec::kEmbedding:
      if (path != "model.sequential.0") {
        return places_.Error(path + ".embedding", path,
                             ".embedding must be the first layer: it takes "
                             "token ids");
      }
      SetFeatures(layer.embedding().dim(), path + ".embedding.dim");
      sequence_ = true;
      return absl::OkStatus();
    case v1::LayerSpec::kPositionEmbedding: {
      const std::string dim = path + ".position_embedding.dim";
      TRIBUTARY_RETURN_IF_ERROR(
          WantFeatures(dim, layer.position_embedding().dim()));
      SetFeatures(layer.position_embedding().dim(), dim);
      return absl::OkStatus();
    }
    case v1::LayerSpec::kAttention:
      TRIBUTARY_RETURN_IF_ERROR(
          WantFeatures(path + ".attention.dim", layer.attention().dim()));
      SetFeatures(layer.attention().dim(), path + ".attention.dim");
      return CheckAttention(places_, path + ".attention", layer.attention());
    case v1::LayerSpec::kResidual:
      return EnterResidual(path + ".residual", layer.residual());
    case v1::LayerSpec::kTiedLinear:
      return EnterTied(path + ".tied_linear", layer.tied_linear());
    case v1::LayerSpec::kBatchNorm:
      return EnterBatchNorm(path + ".batch_norm", layer.batch_norm());
    default:
      return absl::OkStatus();  // elementwise
  }
}

absl::Status LayerChain::EnterConvolution(const std::string& path,
                                          const v1::Conv2dSpec& conv) {
  TRIBUTARY_RETURN_IF_ERROR(WantChannels(path + ".in", conv.in()));
  for (const auto& [name, numbers] :
       {std::pair(".kernel", &conv.kernel()),
        std::pair(".stride", &conv.stride()),
        std::pair(".padding", &conv.padding()),
        std::pair(".dilation", &conv.dilation())}) {
    TRIBUTARY_RETURN_IF_ERROR(CheckPair(places_, path + name, *numbers));
  }
  if (conv.in() % conv.groups() != 0 || conv.out() % conv.groups() != 0) {
    return places_.Error(path + ".groups", path,
                         ".groups must divide in and out, ", conv.in(), " and ",
                         conv.out(), ", got ", conv.groups());
  }
  width_ = LayerWidth();
  width_.channels = conv.out();
  width_.channels_path = path + ".out";
  return absl::OkStatus();
}

absl::Status LayerChain::EnterBatchNorm(const std::string& path,
                                        const v1::BatchNormSpec& norm) {
  if (sequence_) {
    return places_.Error(path, path,
                         " takes images or plain features, here come "
                         "sequences of tokens; layernorm takes them");
  }
  const std::string features = path + ".features";
  TRIBUTARY_RETURN_IF_ERROR(WantFeatures(features, norm.features()));
  TRIBUTARY_RETURN_IF_ERROR(WantChannels(features, norm.features()));
  if (width_.features != 0 && plain_batch_norm_.empty()) {
    plain_batch_norm_ = path;
  }
  return absl::OkStatus();
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
    return places_.Error(path, path, ".body makes ", body.features,
                         " features, but ", what, width_.features);
  }
  if (differ(body.channels, width_.channels)) {
    return places_.Error(path, path, ".body makes ", body.channels,
                         " channels, but ", what, width_.channels);
  }
  if (body.features != 0 || body.channels != 0) width_ = body;
  return absl::OkStatus();
}

absl::Status LayerChain::EnterTied(const std::string& path,
                                   const v1::TiedLinearSpec& tied) {
  if (absl::StrContains(path, ".residual.")) {
    return places_.Error(path, path,
                         " stands in a residual; it must be a layer of the "
                         "model itself");
  }
  if (tied.to() != "0.weight" || model_.sequential().empty() ||
      !model_.sequential(0).has_embedding()) {
    return places_.Error(path + ".to", path,
                         ".to wants the weight of an embedding, which is the "
                         "first layer: \"0.weight\"; got ",
                         Quoted(tied.to()));
  }
  // Its gradient is added to the embedding's; a second one's would replace it.
  if (std::exchange(has_tied_, true)) {
    return places_.Error(path, path,
                         " is tied to 0.weight, as a layer before "
                         "it; one may be");
  }
  const v1::EmbeddingSpec& embedding = model_.sequential(0).embedding();
  if (width_.features != 0 && width_.features != embedding.dim()) {
    return places_.Error(path, path, " takes ", embedding.dim(),
                         " features, the embedding's dim, but ",
                         width_.features_path, " makes ", width_.features);
  }
  SetFeatures(embedding.tokens(), "model.sequential.0.embedding.tokens");
  return absl::OkStatus();
}

absl::Status LayerChain::WantFeatures(const std::string& path,
                                      int64_t wanted) const {
  if (width_.features == 0 || width_.features == wanted) {
    return absl::OkStatus();
  }
  return places_.Error(path, path, " is ", wanted, ", but ",
                       width_.features_path, " makes ", width_.features,
                       " features");
}

absl::Status LayerChain::WantChannels(const std::string& path,
                                      int64_t wanted) const {
  if (width_.channels == 0 || width_.channels == wanted) {
    return absl::OkStatus();
  }
  return places_.Error(path, path, " is ", wanted, ", but ",
                       width_.channels_path, " makes ", width_.channels,
                       " channels");
}

void LayerChain::SetFeatures(int64_t features, std::string path) {
  width_ = LayerWidth();
  width_.features = features;
  width_.features_path = std::move(path);
}

}  // namespace tributary
