#include "worker/model/initializer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/check.h"

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

}  // namespace

void InitialWeights(const ParameterSpecs& parameters, const v1::ModelSpec& spec,
                    uint64_t seed, int parameter, absl::Span<float> out) {
  const absl::string_view name = parameters[parameter].name;
  int layer = -1;
  TRIBUTARY_CHECK(absl::SimpleAtoi(name.substr(0, name.find('.')), &layer));
  TRIBUTARY_CHECK(layer >= 0 && layer < spec.sequential_size());
  TRIBUTARY_CHECK(static_cast<int64_t>(out.size()) ==
                  parameters[parameter].size());
  if (spec.sequential(layer).has_layernorm()) {
    std::fill(out.begin(), out.end(), absl::EndsWith(name, "weight") ? 1 : 0);
    return;
  }
  const double in = static_cast<double>(spec.sequential(layer).linear().in());
  const float bound = static_cast<float>(1 / std::sqrt(in));
  const uint64_t stream = Mix(Mix(seed + kGolden) + parameter * kGolden);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = (2 * Uniform(stream, i) - 1) * bound;
  }
}

}  // namespace tributary
