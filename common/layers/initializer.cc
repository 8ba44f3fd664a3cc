// SPDX-License-Identifier: Apache-2.0
#include "common/layers/initializer.h"

#include <cmath>
#include <numbers>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/layers/layer_kind.h"
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
  // u is in (0, 1] and v in [0, 1).
  const double u = 1 - static_cast<double>(Uniform(stream, 2 * element));
  const double v = static_cast<double>(Uniform(stream, 2 * element + 1));
  return static_cast<float>(std * std::sqrt(-2 * std::log(u)) *
                            std::cos(2 * std::numbers::pi * v));
}

InitialValues InitialValuesOf(const v1::LayerSpec& layer,
                              absl::string_view name) {
  const LayerKind* kind = KindOf(layer);
  TRIBUTARY_CHECK(kind != nullptr);
  for (const LayerParameter& parameter : kind->Parameters(Resolved(layer))) {
    if (parameter.name == name) return parameter.initial;
  }
  TRIBUTARY_CHECK(false);  // no layer has such a parameter
}

// Fills `out` with the elements from `first` on.
void FillElements(const InitialValues& initial, uint64_t stream, int64_t first,
                  absl::Span<float> out) {
  const float bound = static_cast<float>(initial.bound);
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t element = static_cast<uint64_t>(first) + i;
    if (bound > 0) {
      out[i] = (2 * Uniform(stream, element) - 1) * bound;
    } else if (initial.std > 0) {
      out[i] = Normal(stream, element, initial.std);
    } else {
      out[i] = initial.value;
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
  const InitialValues initial = InitialValuesOf(*layer, name);
  const uint64_t stream = Mix(Mix(seed + kGolden) + parameter * kGolden);
  for (const SliceRun& run : RunsOf(shape, slice)) {
    FillElements(initial, stream, run.from, out.subspan(run.to, run.size));
  }
}

}  // namespace tributary
