#include "common/layers/layer_shapes.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/layers/model_parameters.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Numbers = absl::StatusOr<LayerNumbers>;

// FLOPs an element of what is no product: an exponential with what is around
// it, a random draw, the statistics of a normalization and their derivative.
constexpr double kExponential = 10;
constexpr double kDraw = 10;
constexpr double kNormalize = 8;
constexpr double kNormalizeBackward = 12;

// Queries whose scores the CPU computes together (kernels/cpu/attention.cc).
constexpr int64_t kQueries = 128;

std::string Text(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

template <typename... Words>
absl::Status Wants(const Shape& input, const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat(
      "wants samples ", words..., ", gets samples of shape ", Text(input)));
}

double Elements(const Shape& shape) {
  return static_cast<double>(NumElements(shape));
}

Numbers OfLinear(const Shape& input, int64_t in, int64_t out, bool bias,
                 bool first) {
  LayerNumbers n;
  n.output_shape = input;
  if (!input.empty() && input.back() == in) {
    n.output_shape.back() = out;
  } else if (first && NumElements(input) == in) {
    n.output_shape = {out};
  } else {
    return Wants(input, "whose last extent is ", in);
  }
  const double product = 2 * Elements(n.output_shape) * static_cast<double>(in);
  const double add = bias ? Elements(n.output_shape) : 0;
  n.forward_flops = product + add;
  n.backward_flops = product + add;
  n.input_gradient_flops = product;
  n.reads_input = true;
  n.in_place = false;
  return n;
}

Numbers OfActivation(const Shape& input, bool reads_output, double flops) {
  LayerNumbers n;
  n.output_shape = input;
  n.forward_flops = flops * Elements(input);
  n.input_gradient_flops = n.forward_flops;
  n.reads_output = reads_output;
  n.reads_input = !reads_output;
  return n;
}

Numbers OfLayerNorm(const v1::LayerNormSpec& spec, const Shape& input) {
  if (input.empty() || input.back() != spec.features()) {
    return Wants(input, "whose last extent is features = ", spec.features());
  }
  LayerNumbers n;
  n.output_shape = input;
  n.num_parameters = 2;
  n.forward_flops = kNormalize * Elements(input);
  n.backward_flops = kNormalizeBackward * Elements(input);
  n.own_elements = 2 * (NumElements(input) / spec.features());
  n.reads_input = true;
  n.in_place = false;
  n.always_writes_input_gradient = true;
  return n;
}

Numbers OfBatchNorm(const v1::BatchNormSpec& spec, const Shape& input) {
  const int64_t features = input.size() == 2 ? 1 : input.empty() ? 0 : input[0];
  if (features != spec.features() || input.size() > 3) {
    return Wants(input, "of features = ", spec.features(),
                 " channels or numbers");
  }
  LayerNumbers n;
  n.output_shape = input;
  n.num_parameters = 4;
  n.forward_flops = kNormalize * Elements(input);
  n.backward_flops = n.input_gradient_flops =
      kNormalizeBackward / 2 * Elements(input);
  n.reads_input = true;
  n.in_place = false;
  return n;
}

absl::StatusOr<int64_t> ChannelsOf(const Shape& input) {
  if (input.size() == 3) return input[0];
  if (input.size() == 2) return 1;
  return Wants(input, "of shape [channels, height, width] or [height, width]");
}

// Height and width of what a window makes of the input's planes.
template <typename Spec>
absl::StatusOr<std::array<int64_t, 2>> WindowedPlane(const Spec& spec,
                                                     const Shape& input) {
  const std::array<int64_t, 2> kernel = PairOf(spec.kernel(), 1);
  const std::array<int64_t, 2> padding = PairOf(spec.padding(), 0);
  std::array<int64_t, 2> stride = PairOf(spec.stride(), 1);
  std::array<int64_t, 2> dilation = {1, 1};
  if constexpr (std::is_same_v<Spec, v1::Conv2dSpec>) {
    dilation = PairOf(spec.dilation(), 1);
  } else if (spec.stride().empty()) {
    stride = kernel;
  }
  std::array<int64_t, 2> plane;
  for (int side = 0; side < 2; ++side) {
    const int64_t extent = input[input.size() - 2 + side];
    const int64_t over =
        extent + 2 * padding[side] - dilation[side] * (kernel[side] - 1) - 1;
    if (over < 0) {
      return Wants(input, "into which a kernel of ", kernel[0], " x ",
                   kernel[1], " fits");
    }
    plane[side] = over / stride[side] + 1;
  }
  return plane;
}

Numbers OfConv2d(const v1::Conv2dSpec& spec, const Shape& input) {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(input));
  if (channels != spec.in()) {
    return Wants(input, "of in = ", spec.in(), " channels");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const auto plane, WindowedPlane(spec, input));
  const std::array<int64_t, 2> kernel = PairOf(spec.kernel(), 1);
  const int64_t groups = spec.has_groups() ? spec.groups() : 1;
  const bool bias = !spec.has_bias() || spec.bias();
  LayerNumbers n;
  n.output_shape = {spec.out(), plane[0], plane[1]};
  n.num_parameters = bias ? 2 : 1;
  const double product =
      2 * Elements(n.output_shape) *
      static_cast<double>(spec.in() / groups * kernel[0] * kernel[1]);
  const double add = bias ? Elements(n.output_shape) : 0;
  n.forward_flops = product + add;
  n.backward_flops = product + add;
  n.input_gradient_flops = product;
  n.reads_input = true;
  n.in_place = false;
  return n;
}

template <typename Pool>
Numbers OfPool(const Pool& spec, const Shape& input) {
  TRIBUTARY_RETURN_IF_ERROR(ChannelsOf(input).status());
  TRIBUTARY_ASSIGN_OR_RETURN(const auto plane, WindowedPlane(spec, input));
  const std::array<int64_t, 2> kernel = PairOf(spec.kernel(), 1);
  LayerNumbers n;
  n.output_shape = input;
  n.output_shape[input.size() - 2] = plane[0];
  n.output_shape[input.size() - 1] = plane[1];
  n.forward_flops =
      Elements(n.output_shape) * static_cast<double>(kernel[0] * kernel[1]);
  n.in_place = false;
  if constexpr (std::is_same_v<Pool, v1::MaxPoolSpec>) {
    n.input_gradient_flops = Elements(n.output_shape);
    n.own_elements = NumElements(n.output_shape);  // where the maxima were
  } else {
    n.input_gradient_flops = n.forward_flops;
  }
  return n;
}

Numbers OfGlobalAvgPool(const Shape& input) {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(input));
  LayerNumbers n;
  n.output_shape = {channels};
  n.forward_flops = n.input_gradient_flops = Elements(input);
  n.in_place = false;
  return n;
}

Numbers OfEmbedding(const v1::EmbeddingSpec& spec, const Shape& input,
                    bool first) {
  if (!first) {
    return absl::InvalidArgumentError(
        "takes token ids, so it must be the model's first layer");
  }
  LayerNumbers n;
  n.output_shape = input;
  n.output_shape.push_back(spec.dim());
  n.num_parameters = 1;
  n.forward_flops = n.backward_flops = Elements(n.output_shape);
  n.own_elements = 2 * NumElements(input);  // ids of eight bytes
  n.in_place = false;
  return n;
}

Numbers OfPositionEmbedding(const v1::PositionEmbeddingSpec& spec,
                            const Shape& input) {
  if (input.size() != 2 || input[1] != spec.dim() || input[0] > spec.length()) {
    return Wants(input, "of shape [positions, dim = ", spec.dim(),
                 "] with at most length = ", spec.length(), " positions");
  }
  LayerNumbers n;
  n.output_shape = input;
  n.num_parameters = 1;
  n.forward_flops = n.backward_flops = Elements(input);
  return n;
}

// Scores that are computed for one sample: of a causal attention those up to
// the last key that a block of queries sees.
double Scores(int64_t time, int64_t heads, bool causal) {
  const double all = static_cast<double>(time);
  const double per_head = static_cast<double>(heads);
  if (!causal) return per_head * all * all;
  // Block b of q whole ones sees (b + 1) kQueries keys, what is left all.
  const double queries = static_cast<double>(kQueries);
  const double whole = static_cast<double>(time / kQueries);
  const double rest = static_cast<double>(time % kQueries);
  return per_head * (queries * queries * whole * (whole + 1) / 2 + rest * all);
}

Numbers OfAttention(const v1::AttentionSpec& spec, const Shape& input) {
  if (input.size() != 2 || input[1] != spec.dim()) {
    return Wants(input, "of shape [positions, dim = ", spec.dim(), "]");
  }
  const int64_t time = input[0], dim = spec.dim();
  const bool bias = !spec.has_qkv_bias() || spec.qkv_bias();
  const double size = Elements(input), d = static_cast<double>(dim);
  const double scores = Scores(time, spec.heads(), spec.causal());
  const double product = 2 * scores * d / static_cast<double>(spec.heads());
  const double add = size + (bias ? 3 * size : 0);
  LayerNumbers n;
  n.output_shape = input;
  n.num_parameters = bias ? 4 : 3;
  // q, k, v and the output; scores and context.
  n.forward_flops =
      2 * size * 4 * d + add + 2 * product + kExponential * scores;
  // Weights of both projections and the gradient of the context; the scores
  // again and four products from them.
  n.backward_flops =
      2 * size * 5 * d + add + 5 * product + kExponential * scores;
  n.input_gradient_flops = 2 * size * 3 * d;
  // q, k, v, the context and the logarithms of the sums.
  n.own_elements = 4 * NumElements(input) + time * spec.heads();
  n.scratch_elements = 4 * NumElements(input);
  n.reads_input = true;
  n.in_place = false;
  return n;
}

Numbers OfTiedLinear(const v1::TiedLinearSpec& spec, const Shape& input,
                     const ParameterSpecs& parameters) {
  for (const ParameterSpec& owner : parameters) {
    if (owner.name != spec.to() || owner.shape.size() != 2) continue;
    return OfLinear(input, owner.shape[1], owner.shape[0], /*bias=*/false,
                    /*first=*/false);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "wants the name of an embedding's weight, got \"", spec.to(), "\""));
}

}  // namespace

absl::StatusOr<LayerNumbers> NumbersOfLayer(const v1::LayerSpec& spec,
                                            const Shape& input_shape,
                                            const ParameterSpecs& parameters,
                                            bool first) {
  switch (spec.kind_case()) {
    case v1::LayerSpec::kLinear: {
      const bool bias = !spec.linear().has_bias() || spec.linear().bias();
      Numbers n = OfLinear(input_shape, spec.linear().in(), spec.linear().out(),
                           bias, first);
      if (n.ok()) n->num_parameters = bias ? 2 : 1;
      return n;
    }
    case v1::LayerSpec::kRelu:
      return OfActivation(input_shape, /*reads_output=*/true, 1);
    case v1::LayerSpec::kSigmoid:
    case v1::LayerSpec::kTanh:
      return OfActivation(input_shape, /*reads_output=*/true, kExponential);
    case v1::LayerSpec::kGelu:
    case v1::LayerSpec::kSilu:
      return OfActivation(input_shape, /*reads_output=*/false, kExponential);
    case v1::LayerSpec::kLayernorm:
      return OfLayerNorm(spec.layernorm(), input_shape);
    case v1::LayerSpec::kBatchNorm:
      return OfBatchNorm(spec.batch_norm(), input_shape);
    case v1::LayerSpec::kDropout: {
      Numbers n = OfActivation(input_shape, /*reads_output=*/false, kDraw);
      n->reads_input = false;  // it draws again
      return n;
    }
    case v1::LayerSpec::kFlatten: {
      LayerNumbers n;
      n.output_shape = {NumElements(input_shape)};
      n.passes_through = true;
      return n;
    }
    case v1::LayerSpec::kConv2D:
      return OfConv2d(spec.conv2d(), input_shape);
    case v1::LayerSpec::kMaxPool:
      return OfPool(spec.max_pool(), input_shape);
    case v1::LayerSpec::kAvgPool:
      return OfPool(spec.avg_pool(), input_shape);
    case v1::LayerSpec::kGlobalAvgPool:
      return OfGlobalAvgPool(input_shape);
    case v1::LayerSpec::kEmbedding:
      return OfEmbedding(spec.embedding(), input_shape, first);
    case v1::LayerSpec::kPositionEmbedding:
      return OfPositionEmbedding(spec.position_embedding(), input_shape);
    case v1::LayerSpec::kAttention:
      return OfAttention(spec.attention(), input_shape);
    case v1::LayerSpec::kTiedLinear:
      return OfTiedLinear(spec.tied_linear(), input_shape, parameters);
    default:
      return absl::InvalidArgumentError(
          "is of no kind that costs are known of");
  }
}

}  // namespace tributary
