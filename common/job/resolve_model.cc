// SPDX-License-Identifier: Apache-2.0
// Expands presets into layers.
#include <array>

#include "absl/strings/str_cat.h"
#include "common/job/resolve.h"
#include "common/layers/layer_kind.h"
#include "common/layers/window_plane.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Layers = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

void AddLinear(int64_t in, int64_t out, Layers* layers) {
  v1::LinearSpec* linear = layers->Add()->mutable_linear();
  linear->set_in(in);
  linear->set_out(out);
}

void AddDropout(double p, Layers* layers) {
  if (p > 0) layers->Add()->mutable_dropout()->set_p(p);
}

void AddActivation(v1::ActivationKind kind, Layers* layers) {
  v1::LayerSpec* layer = layers->Add();
  switch (kind) {
    case v1::ACTIVATION_KIND_GELU:
      layer->mutable_gelu();
      return;
    case v1::ACTIVATION_KIND_SIGMOID:
      layer->mutable_sigmoid();
      return;
    case v1::ACTIVATION_KIND_TANH:
      layer->mutable_tanh();
      return;
    case v1::ACTIVATION_KIND_SILU:
      layer->mutable_silu();
      return;
    default:
      layer->mutable_relu();
  }
}

void ExpandMlp(const v1::MlpSpec& mlp, Layers* layers) {
  int64_t in = mlp.in();
  for (int64_t hidden : mlp.hidden()) {
    AddLinear(in, hidden, layers);
    AddActivation(mlp.activation(), layers);
    AddDropout(mlp.dropout(), layers);
    in = hidden;
  }
  AddLinear(in, mlp.out(), layers);
}

v1::Conv2dSpec* AddConvolution(int64_t in, int64_t out, int64_t kernel,
                               Layers* layers) {
  v1::Conv2dSpec* conv = layers->Add()->mutable_conv2d();
  conv->set_in(in);
  conv->set_out(out);
  conv->add_kernel(kernel);
  conv->add_padding(kernel / 2);
  return conv;
}

absl::Status ExpandCnn(const Places& places, const v1::CnnSpec& cnn,
                       Layers* layers) {
  std::array<int64_t, 2> image = PairOf(cnn.image(), 1);
  int64_t channels = cnn.in_channels();
  for (int64_t out : cnn.channels()) {
    AddConvolution(channels, out, 3, layers);
    layers->Add()->mutable_relu();
    layers->Add()->mutable_max_pool()->add_kernel(2);
    image = {image[0] / 2, image[1] / 2};
    channels = out;
  }
  if (image[0] < 1 || image[1] < 1) {
    return places.Error("model.cnn.channels", "model.cnn.channels has ",
                        cnn.channels_size(),
                        " entries, each of which halves the image; nothing is "
                        "left of model.cnn.image");
  }
  layers->Add()->mutable_flatten();
  AddLinear(channels * image[0] * image[1], cnn.hidden(), layers);
  layers->Add()->mutable_relu();
  AddDropout(cnn.dropout(), layers);
  AddLinear(cnn.hidden(), cnn.classes(), layers);
  return absl::OkStatus();
}

void AddBatchNorm(int64_t features, Layers* layers) {
  layers->Add()->mutable_batch_norm()->set_features(features);
}

// A convolution followed by batch norm. It has no bias, because the batch norm
// would cancel it.
void AddNormedConvolution(int64_t in, int64_t out, int64_t kernel,
                          int64_t stride, Layers* layers) {
  v1::Conv2dSpec* conv = AddConvolution(in, out, kernel, layers);
  conv->add_stride(stride);
  conv->set_bias(false);
  AddBatchNorm(out, layers);
}

// The shortcut is the identity, or a projection if the body changes the shape
// (option B of the paper).
void AddResnetBlock(int64_t in, int64_t out, int64_t stride, Layers* layers) {
  v1::ResidualSpec* residual = layers->Add()->mutable_residual();
  Layers* body = residual->mutable_body();
  AddNormedConvolution(in, out, 3, stride, body);
  body->Add()->mutable_relu();
  AddNormedConvolution(out, out, 3, 1, body);
  if (stride != 1 || in != out) {
    AddNormedConvolution(in, out, 1, stride, residual->mutable_shortcut());
  }
  layers->Add()->mutable_relu();
}

absl::Status ExpandResnet(const Places& places, const v1::ResnetSpec& resnet,
                          Layers* layers) {
  const int64_t stages = resnet.channels_size();
  const int64_t blocks = (resnet.depth() - 2) / (2 * stages);
  if (blocks < 1 || resnet.depth() != 2 * stages * blocks + 2) {
    return places.Error("model.resnet.depth", "model.resnet.depth must be ",
                        2 * stages + 2, " or more by a multiple of ",
                        2 * stages, ", two convolutions for each block of ",
                        stages, " stages; got ", resnet.depth());
  }
  int64_t in = resnet.channels(0);
  AddNormedConvolution(resnet.in_channels(), in, 3, 1, layers);
  layers->Add()->mutable_relu();
  for (int stage = 0; stage < stages; ++stage) {
    for (int64_t block = 0; block < blocks; ++block) {
      AddResnetBlock(in, resnet.channels(stage),
                     stage > 0 && block == 0 ? 2 : 1, layers);
      in = resnet.channels(stage);
    }
  }
  layers->Add()->mutable_global_avg_pool();
  AddLinear(in, resnet.classes(), layers);
  return absl::OkStatus();
}

// Standard deviation of GPT-2's initial embeddings, so that a tied head starts
// with small logits.
constexpr double kEmbeddingStd = 0.02;

void AddGptBlock(const v1::GptSpec& gpt, Layers* layers) {
  Layers* attention = layers->Add()->mutable_residual()->mutable_body();
  attention->Add()->mutable_layernorm()->set_features(gpt.dim());
  v1::AttentionSpec* heads = attention->Add()->mutable_attention();
  heads->set_dim(gpt.dim());
  heads->set_heads(gpt.heads());
  heads->set_causal(true);
  heads->set_qkv_bias(gpt.qkv_bias());
  AddDropout(gpt.dropout(), attention);

  Layers* mlp = layers->Add()->mutable_residual()->mutable_body();
  mlp->Add()->mutable_layernorm()->set_features(gpt.dim());
  AddLinear(gpt.dim(), 4 * gpt.dim(), mlp);
  mlp->Add()->mutable_gelu()->set_approximate(gpt.gelu());
  AddLinear(4 * gpt.dim(), gpt.dim(), mlp);
  AddDropout(gpt.dropout(), mlp);
}

absl::Status ExpandGpt(const Places& places, const v1::GptSpec& gpt,
                       Layers* layers) {
  if (gpt.dim() % gpt.heads() != 0) {
    return places.Error("model.gpt.heads", "model.gpt.heads must divide dim, ",
                        gpt.dim(), ", got ", gpt.heads());
  }
  v1::EmbeddingSpec* embedding = layers->Add()->mutable_embedding();
  embedding->set_tokens(gpt.vocabulary());
  embedding->set_dim(gpt.dim());
  embedding->set_std(kEmbeddingStd);
  v1::PositionEmbeddingSpec* position =
      layers->Add()->mutable_position_embedding();
  position->set_length(gpt.length());
  position->set_dim(gpt.dim());
  position->set_std(kEmbeddingStd);
  AddDropout(gpt.dropout(), layers);
  for (int64_t i = 0; i < gpt.layers(); ++i) AddGptBlock(gpt, layers);
  layers->Add()->mutable_layernorm()->set_features(gpt.dim());
  if (gpt.tied()) {
    layers->Add()->mutable_tied_linear()->set_to("0.weight");
  } else {
    AddLinear(gpt.dim(), gpt.vocabulary(), layers);
    layers->rbegin()->mutable_linear()->set_bias(false);
  }
  return absl::OkStatus();
}

constexpr char kChoices[] = "sequential, mlp, cnn, gpt, resnet";

// Returns the preset's key, such as "gpt"; empty when the file lists layers.
absl::StatusOr<std::string> ChosenPreset(const Places& places,
                                         const v1::ModelSpec& model) {
  std::string chosen;
  for (const auto& [name, has] :
       {std::pair("sequential", !model.sequential().empty()),
        std::pair("mlp", model.has_mlp()), std::pair("cnn", model.has_cnn()),
        std::pair("gpt", model.has_gpt()),
        std::pair("resnet", model.has_resnet())}) {
    if (!has) continue;
    if (!chosen.empty()) {
      return places.Error(absl::StrCat("model.", name), name, " and ", chosen,
                          " exclude each other in model; keep one");
    }
    chosen = name;
  }
  if (!chosen.empty()) return chosen == "sequential" ? "" : chosen;
  if (places.Has("model.sequential")) {
    return places.Error("model.sequential", "model.sequential is empty");
  }
  return places.Error("model", "model wants one of ", kChoices);
}

}  // namespace

absl::Status ExpandPreset(Places* places, v1::ModelSpec* model) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string preset,
                             ChosenPreset(*places, *model));
  Layers* layers = model->mutable_sequential();
  if (model->has_mlp()) {
    ExpandMlp(model->mlp(), layers);
  } else if (model->has_cnn()) {
    TRIBUTARY_RETURN_IF_ERROR(ExpandCnn(*places, model->cnn(), layers));
  } else if (model->has_gpt()) {
    TRIBUTARY_RETURN_IF_ERROR(ExpandGpt(*places, model->gpt(), layers));
  } else if (model->has_resnet()) {
    TRIBUTARY_RETURN_IF_ERROR(ExpandResnet(*places, model->resnet(), layers));
  }
  if (!preset.empty()) {
    places->Record("model.sequential",
                   places->Find(absl::StrCat("model.", preset)));
  }
  model->clear_mlp();
  model->clear_cnn();
  model->clear_gpt();
  model->clear_resnet();
  ResolveLayers(model);
  return absl::OkStatus();
}

}  // namespace tributary
