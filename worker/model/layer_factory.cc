#include "worker/model/layer_factory.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/model/device_array.h"
#include "worker/model/layer_stack.h"
#include "worker/model/layers/elementwise_layers.h"
#include "worker/model/layers/layer_creators.h"
#include "worker/model/layers/layer_norm_layer.h"
#include "worker/model/layers/linear_layer.h"
#include "worker/model/layers/residual_layer.h"

namespace tributary {
namespace {

// "linear", as the job file writes it.
std::string KindName(const v1::LayerSpec& spec) {
  return v1::LayerSpec::descriptor()
      ->FindFieldByNumber(spec.kind_case())
      ->name();
}

LayerOr CreateLinear(const v1::LinearSpec& spec, const Shape& input_shape,
                     const LayerOptions& options) {
  const int64_t in = spec.in(), out = spec.out();
  if (in < 1 || in > kMaxExtent || out < 1 || out > kMaxExtent) {
    return absl::InvalidArgumentError(
        absl::StrCat("in and out must be from 1 to ", kMaxExtent, ", got in ",
                     in, ", out ", out));
  }
  const LayerPart part = PartOf(options);
  const int64_t own_in = part.Rows(in), own_out = part.Columns(out);
  Shape output_shape = input_shape;
  if (!input_shape.empty() && input_shape.back() == own_in) {
    output_shape.back() = own_out;
  } else if (options.first && NumElements(input_shape) == own_in) {
    output_shape = {own_out};  // images as they come, without a flatten
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("wants samples whose last extent is in = ", in,
                     ", gets samples of shape ", SampleText(input_shape)));
  }
  const bool bias = !spec.has_bias() || spec.bias();
  const bool bias_of_sum = bias && part.cut == LayerCut::kRows;
  return JoinParts(std::make_unique<LinearLayer>(
                       options.ops, input_shape, std::move(output_shape),
                       own_in, own_out, bias && !bias_of_sum),
                   options, bias_of_sum ? "bias" : "");
}

LayerOr CreateLayerNorm(const v1::LayerNormSpec& spec, const Shape& input_shape,
                        const LayerOptions& options) {
  const int64_t features = spec.features();
  const double epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-5;
  if (features < 1 || !(epsilon > 0 && epsilon < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("features must be at least 1 and epsilon between 0 and 1, "
                     "got features ",
                     features, ", epsilon ", epsilon));
  }
  if (input_shape.empty() || input_shape.back() != features) {
    return absl::InvalidArgumentError(
        absl::StrCat("wants samples whose last extent is features = ", features,
                     ", gets samples of shape ", SampleText(input_shape)));
  }
  const int64_t rows = options.max_rows * (NumElements(input_shape) / features);
  TRIBUTARY_ASSIGN_OR_RETURN(DeviceArray<float> mean,
                             DeviceArray<float>::Allocate(options.ops, rows));
  TRIBUTARY_ASSIGN_OR_RETURN(DeviceArray<float> rstd,
                             DeviceArray<float>::Allocate(options.ops, rows));
  return std::make_unique<LayerNormLayer>(options.ops, input_shape, features,
                                          static_cast<float>(epsilon),
                                          std::move(mean), std::move(rstd));
}

LayerOr CreateDropout(const v1::DropoutSpec& spec, const Shape& input_shape,
                      const LayerOptions& options) {
  const double p = spec.has_p() ? spec.p() : 0.5;
  if (!(p >= 0 && p < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("p must be at least 0 and below 1, got ", p));
  }
  DropoutKey key = {.seed = options.seed, .layer = options.dropout_key};
  if (const LayerPart part = PartOf(options); part.cut == LayerCut::kWithin) {
    key.first_column = part.begin;
    key.run = part.size();
    key.run_stride = part.extent;
  }
  return std::make_unique<DropoutLayer>(options.ops, input_shape,
                                        static_cast<float>(p), key);
}

LayerOr CreateActivation(ActivationKind kind, const Shape& input_shape,
                         const LayerOptions& options) {
  return std::make_unique<ActivationLayer>(options.ops, input_shape, kind);
}

// The layers of one branch, with their memory.
absl::StatusOr<std::unique_ptr<LayerStack>> CreateBranch(
    const char* branch, const LayerStack::Specs& specs,
    const Shape& input_shape, const LayerOptions& options) {
  LayerOptions own = options;
  own.name = absl::StrCat(options.name, ".", branch, ".");
  own.first = false;
  // Apart from the keys of the layers around, and of the other branch.
  own.dropout_key = static_cast<int32_t>(
      (static_cast<uint32_t>(options.dropout_key) + 1) * 1024 +
      (branch[0] == 's' ? 512 : 0));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<LayerStack> stack,
                             LayerStack::Create(specs, input_shape, own));
  TRIBUTARY_RETURN_IF_ERROR(stack->Place(/*input_gradient=*/true));
  return stack;
}

LayerOr CreateResidual(const v1::ResidualSpec& spec, const Shape& input_shape,
                       const LayerOptions& options) {
  if (spec.body().empty()) {
    return absl::InvalidArgumentError("wants at least one layer in its body");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<LayerStack> body,
      CreateBranch("body", spec.body(), input_shape, options));
  std::unique_ptr<LayerStack> shortcut;
  if (!spec.shortcut().empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        shortcut,
        CreateBranch("shortcut", spec.shortcut(), input_shape, options));
  }
  const Shape& around = shortcut ? shortcut->output_shape() : input_shape;
  const Shape output_shape = body->output_shape();
  if (output_shape != around) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its body makes samples of shape ", SampleText(output_shape), ", but ",
        shortcut ? "its shortcut " : "its input has ", SampleText(around)));
  }
  return std::make_unique<ResidualLayer>(options.ops, input_shape, output_shape,
                                         std::move(body), std::move(shortcut));
}

LayerOr CreateByKind(const v1::LayerSpec& spec, const Shape& input_shape,
                     const LayerOptions& options) {
  switch (spec.kind_case()) {
    case v1::LayerSpec::kLinear:
      return CreateLinear(spec.linear(), input_shape, options);
    case v1::LayerSpec::kRelu:
      return CreateActivation(ActivationKind::kRelu, input_shape, options);
    case v1::LayerSpec::kGelu:
      return CreateActivation(spec.gelu().approximate() == v1::GeluSpec::TANH
                                  ? ActivationKind::kGeluTanh
                                  : ActivationKind::kGeluErf,
                              input_shape, options);
    case v1::LayerSpec::kSigmoid:
      return CreateActivation(ActivationKind::kSigmoid, input_shape, options);
    case v1::LayerSpec::kTanh:
      return CreateActivation(ActivationKind::kTanh, input_shape, options);
    case v1::LayerSpec::kSilu:
      return CreateActivation(ActivationKind::kSilu, input_shape, options);
    case v1::LayerSpec::kLayernorm:
      return CreateLayerNorm(spec.layernorm(), input_shape, options);
    case v1::LayerSpec::kDropout:
      return CreateDropout(spec.dropout(), input_shape, options);
    case v1::LayerSpec::kFlatten:
      return std::make_unique<FlattenLayer>(options.ops, input_shape);
    case v1::LayerSpec::kConv2D:
      return CreateConv2d(spec.conv2d(), input_shape, options);
    case v1::LayerSpec::kMaxPool:
      return CreateMaxPool(spec.max_pool(), input_shape, options);
    case v1::LayerSpec::kAvgPool:
      return CreateAvgPool(spec.avg_pool(), input_shape, options);
    case v1::LayerSpec::kGlobalAvgPool:
      return CreateGlobalAvgPool(input_shape, options);
    case v1::LayerSpec::kEmbedding:
      return CreateEmbedding(spec.embedding(), input_shape, options);
    case v1::LayerSpec::kPositionEmbedding:
      return CreatePositionEmbedding(spec.position_embedding(), input_shape,
                                     options);
    case v1::LayerSpec::kAttention:
      return CreateAttention(spec.attention(), input_shape, options);
    case v1::LayerSpec::kResidual:
      return CreateResidual(spec.residual(), input_shape, options);
    case v1::LayerSpec::kTiedLinear:
      return CreateTiedLinear(spec.tied_linear(), input_shape, options);
    case v1::LayerSpec::kBatchNorm:
      return CreateBatchNorm(spec.batch_norm(), input_shape, options);
    case v1::LayerSpec::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no kind");
}

}  // namespace

LayerOr CreateLayer(const v1::LayerSpec& spec, const Shape& input_shape,
                    const LayerOptions& options) {
  LayerOr layer = CreateByKind(spec, input_shape, options);
  if (layer.ok() && (*layer)->output_size() > kMaxExtent) {
    layer = absl::InvalidArgumentError(
        absl::StrCat("gives ", (*layer)->output_size(),
                     " numbers a sample, wants at most ", kMaxExtent));
  }
  if (layer.ok()) return layer;
  if (absl::StartsWith(layer.status().message(), "layer ")) {
    return layer;  // of a layer within this one
  }
  const std::string kind =
      spec.kind_case() == v1::LayerSpec::KIND_NOT_SET ? "?" : KindName(spec);
  return absl::Status(layer.status().code(),
                      absl::StrCat("layer ", options.name, " (", kind,
                                   "): ", layer.status().message()));
}

}  // namespace tributary
