#include "worker/model/layer_factory.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "worker/model/device_array.h"
#include "worker/model/elementwise_layers.h"
#include "worker/model/layer_norm_layer.h"
#include "worker/model/linear_layer.h"

namespace tributary {
namespace {

using LayerOr = absl::StatusOr<std::unique_ptr<Layer>>;

// BLAS counts rows and columns in 32 bits.
constexpr int64_t kMaxExtent = 2147483647;

// "linear", as the job file writes it.
std::string KindName(const v1::LayerSpec& spec) {
  return v1::LayerSpec::descriptor()
      ->FindFieldByNumber(spec.kind_case())
      ->name();
}

// "[3, 28, 28]".
std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

LayerOr CreateLinear(const v1::LinearSpec& spec, const Shape& input_shape,
                     const LayerOptions& options) {
  const int64_t in = spec.in(), out = spec.out();
  if (in < 1 || in > kMaxExtent || out < 1 || out > kMaxExtent) {
    return absl::InvalidArgumentError(
        absl::StrCat("in and out must be from 1 to ", kMaxExtent, ", got in ",
                     in, ", out ", out));
  }
  Shape output_shape = input_shape;
  if (!input_shape.empty() && input_shape.back() == in) {
    output_shape.back() = out;
  } else if (options.index == 0 && NumElements(input_shape) == in) {
    output_shape = {out};  // images as they come, without a flatten
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("wants samples whose last extent is in = ", in,
                     ", gets samples of shape ", ShapeText(input_shape)));
  }
  return std::make_unique<LinearLayer>(options.ops, input_shape,
                                       std::move(output_shape), in, out,
                                       !spec.has_bias() || spec.bias());
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
                     ", gets samples of shape ", ShapeText(input_shape)));
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
  return std::make_unique<DropoutLayer>(options.ops, input_shape,
                                        static_cast<float>(p), options.seed,
                                        options.index);
}

LayerOr CreateActivation(ActivationKind kind, const Shape& input_shape,
                         const LayerOptions& options) {
  return std::make_unique<ActivationLayer>(options.ops, input_shape, kind);
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
    case v1::LayerSpec::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no kind");
}

}  // namespace

LayerOr CreateLayer(const v1::LayerSpec& spec, const Shape& input_shape,
                    const LayerOptions& options) {
  LayerOr layer = CreateByKind(spec, input_shape, options);
  if (layer.ok()) return layer;
  const std::string kind =
      spec.kind_case() == v1::LayerSpec::KIND_NOT_SET ? "?" : KindName(spec);
  return absl::Status(layer.status().code(),
                      absl::StrCat("layer ", options.index, " (", kind,
                                   "): ", layer.status().message()));
}

}  // namespace tributary
