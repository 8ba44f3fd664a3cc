// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/best_evaluation.h"

#include <cmath>

namespace tributary {

bool BestEvaluation::IsBetter(double value) const {
  if (!std::isfinite(value)) return false;
  if (!step_) return true;
  const bool lower = metric_ == "loss" || metric_ == "perplexity";
  return lower ? value < value_ : value > value_;
}

void BestEvaluation::Add(int64_t step,
                         const std::map<std::string, double>& metrics) {
  const auto found = metrics.find(metric_);
  if (found == metrics.end() || !IsBetter(found->second)) {
    ++since_;
    return;
  }
  step_ = step;
  value_ = found->second;
  since_ = 0;
}

}  // namespace tributary
