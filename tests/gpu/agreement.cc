// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double ArrayError(const std::vector<double>& reference,
                  const std::vector<double>& candidate) {
  if (reference.size() != candidate.size()) return kInfinity;
  double largest = 0, worst = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i], b = candidate[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(a)) largest = std::max(largest, std::fabs(a));
      continue;
    }
    const double difference = std::fabs(a - b);
    if (!std::isfinite(difference)) return kInfinity;
    largest = std::max(largest, std::fabs(a));
    worst = std::max(worst, difference);
  }
  return worst == 0 ? 0 : worst / (largest > 0 ? largest : 1);
}

}  // namespace

std::vector<AgreementCheck> AllAgreementChecks() {
  std::vector<AgreementCheck> checks;
  AddLayerChecks(&checks);
  AddModelChecks(&checks);
  AddLossChecks(&checks);
  AddEmbeddingChecks(&checks);
  AddUpdateChecks(&checks);
  return checks;
}

double WorstError(const Outputs& reference, const Outputs& candidate) {
  if (reference.size() != candidate.size()) return kInfinity;
  double worst = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    worst = std::max(worst, ArrayError(reference[i], candidate[i]));
  }
  return worst;
}

std::vector<std::pair<std::string, Outputs>> CpuOutputs() {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  std::vector<std::pair<std::string, Outputs>> outputs;
  for (const AgreementCheck& check : AllAgreementChecks()) {
    outputs.emplace_back(check.name, check.run(*ops));
  }
  return outputs;
}

}  // namespace tributary::testing
