// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/class_weights.h"

#include "common/status/status_macros.h"

namespace tributary {

std::vector<double> BalancedClassWeights(absl::Span<const int64_t> rows) {
  int64_t all = 0, classes = 0;
  for (int64_t of_class : rows) {
    all += of_class;
    if (of_class > 0) ++classes;
  }
  std::vector<double> weights;
  for (int64_t of_class : rows) {
    weights.push_back(of_class == 0 ? 1
                                    : static_cast<double>(all) /
                                          (static_cast<double>(classes) *
                                           static_cast<double>(of_class)));
  }
  return weights;
}

absl::StatusOr<v1::LossSpec> WithClassWeights(const v1::LossSpec& loss,
                                              const Dataset& train,
                                              int64_t classes) {
  if (!loss.cross_entropy().balanced()) return loss;
  v1::LossSpec resolved = loss;
  v1::CrossEntropySpec* spec = resolved.mutable_cross_entropy();
  spec->set_balanced(false);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                             train.CountClasses(classes));
  const std::vector<double> weights = BalancedClassWeights(counts);
  spec->mutable_class_weights()->Assign(weights.begin(), weights.end());
  return resolved;
}

}  // namespace tributary
