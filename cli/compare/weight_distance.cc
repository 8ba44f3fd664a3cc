// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/weight_distance.h"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<double> RelativeWeightDistance(
    const std::string& weights_path, const std::string& reference_path) {
  TRIBUTARY_ASSIGN_OR_RETURN(const SafetensorsReader weights,
                             SafetensorsReader::Open(weights_path));
  TRIBUTARY_ASSIGN_OR_RETURN(const SafetensorsReader reference,
                             SafetensorsReader::Open(reference_path));
  if (absl::Status match = MatchTensors(weights, reference.tensors());
      !match.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        weights_path, " and ", reference_path, ": ", match.message()));
  }
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < weights.tensors().size(); ++i) {
    index[weights.tensors()[i].name] = i;
  }
  double difference = 0, norm = 0;
  std::vector<float> a, b;
  for (size_t i = 0; i < reference.tensors().size(); ++i) {
    const ParameterSpec& spec = reference.tensors()[i];
    a.resize(static_cast<size_t>(spec.size()));
    b.resize(a.size());
    TRIBUTARY_RETURN_IF_ERROR(
        weights.Read(index[spec.name], absl::MakeSpan(a)));
    TRIBUTARY_RETURN_IF_ERROR(reference.Read(i, absl::MakeSpan(b)));
    for (size_t e = 0; e < a.size(); ++e) {
      const double d = double{a[e]} - double{b[e]};
      difference += d * d;
      norm += double{b[e]} * double{b[e]};
    }
  }
  if (difference == 0) return 0;
  const double distance = std::sqrt(difference / norm);
  return std::isfinite(distance) ? distance
                                 : std::numeric_limits<double>::infinity();
}

}  // namespace tributary
