#include "common/layers/initializer.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/layers/model_parameters.h"

namespace tributary {
namespace {

// A permutation of 64 bits (splitmix64's; Steele, Lea and Flood, OOPSLA 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

// Uniform in [0, 1) with 24 bits, as many as a float holds.
float Uniform(uint64_t stream, uint64_t element) {
  return static_cast<float>(Mix(stream + element * kGolden) >> 40) * 0x1p-24f;
}

// Normal with mean 0: the method of Box and Muller.
float Normal(uint64_t stream, uint64_t element, double std) {
  // In (0, 1] and [0, 1).
  const double u = 1 - static_cast<double>(Uniform(stream, 2 * element));
  const double v = static_cast<double>(Uniform(stream, 2 * element + 1));
  return static_cast<float>(std * std::sqrt(-2 * std::log(u)) *
                            std::cos(2 * std::numbers::pi * v));
}

// How a parameter starts: uniform within +-bound, normal, or one value.
struct Distribution {
  double bound = 0;
  double std = 0;
  float value = 0;
};

// kaiming_uniform with a = sqrt(5), for weights and biases alike.
Distribution FanIn(double fan_in) { return {.bound = 1 / std::sqrt(fan_in)}; }

double FilterSize(const v1::Conv2dSpec& conv) {
  const std::array<int64_t, 2> kernel = PairOf(conv.kernel(), 1);
  const int64_t groups = conv.has_groups() ? conv.groups() : 1;
  return static_cast<double>(conv.in() / groups) *
         static_cast<double>(kernel[0] * kernel[1]);
}

// The input projections are xavier_uniform and biases 0.
Distribution OfAttention(const v1::AttentionSpec& attention,
                         absl::string_view name) {
  const double dim = static_cast<double>(attention.dim());
  if (name == "in_proj_weight") return {.bound = std::sqrt(6 / (4 * dim))};
  if (name == "out_proj.weight") return FanIn(dim);
  return {};
}

Distribution DistributionOf(const v1::LayerSpec& layer,
                            absl::string_view name) {
  switch (layer.kind_case()) {
    case v1::LayerSpec::kLinear:
      return FanIn(static_cast<double>(layer.linear().in()));
    case v1::LayerSpec::kConv2D:
      return FanIn(FilterSize(layer.conv2d()));
    case v1::LayerSpec::kEmbedding:
      return {.std = layer.embedding().has_std() ? layer.embedding().std() : 1};
    case v1::LayerSpec::kPositionEmbedding:
      return {.std = layer.position_embedding().has_std()
                         ? layer.position_embedding().std()
                         : 1};
    case v1::LayerSpec::kAttention:
      return OfAttention(layer.attention(), name);
    case v1::LayerSpec::kLayernorm:
      return {.value = name == "weight" ? 1.0f : 0.0f};
    case v1::LayerSpec::kBatchNorm: {
      const bool one = name == "weight" || name == "running_var";
      return {.value = one ? 1.0f : 0.0f};
    }
    default:
      TRIBUTARY_CHECK(false);  // no other layer has parameters
  }
  return {};
}

// Elements `first` and on.
void FillElements(const Distribution& distribution, uint64_t stream,
                  int64_t first, absl::Span<float> out) {
  const float bound = static_cast<float>(distribution.bound);
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t element = static_cast<uint64_t>(first) + i;
    if (bound > 0) {
      out[i] = (2 * Uniform(stream, element) - 1) * bound;
    } else if (distribution.std > 0) {
      out[i] = Normal(stream, element, distribution.std);
    } else {
      out[i] = distribution.value;
    }
  }
}

}  // namespace

void InitialWeights(const ParameterSpecs& parameters, const v1::ModelSpec& spec,
                    uint64_t seed, int parameter, absl::Span<float> out) {
  InitialWeights(parameters, spec, seed, parameter, ParameterSlice(), out);
}

void InitialWeights(const ParameterSpecs& parameters, const v1::ModelSpec& spec,
                    uint64_t seed, int parameter, const ParameterSlice& slice,
                    absl::Span<float> out) {
  const Shape& shape = parameters[parameter].shape;
  TRIBUTARY_CHECK(static_cast<int64_t>(out.size()) ==
                  NumElements(ShapeOfSlice(shape, slice)));
  const auto [layer, name] = LayerOfParameter(spec, parameters[parameter].name);
  const Distribution distribution = DistributionOf(*layer, name);
  const uint64_t stream = Mix(Mix(seed + kGolden) + parameter * kGolden);
  for (const SliceRun& run : RunsOf(shape, slice)) {
    FillElements(distribution, stream, run.from, out.subspan(run.to, run.size));
  }
}

}  // namespace tributary
