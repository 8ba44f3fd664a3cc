// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "absl/types/span.h"

namespace tributary {

// The class that a model predicts. Evaluation, confusion matrix and predictions
// all use these functions. They compare logits, because different logits may
// have equal probabilities. kUndecided: an output is not a number.
inline constexpr int64_t kUndecided = -1;

// With one logit for each class: the first class with the largest logit.
inline int64_t DecidedClass(absl::Span<const float> logits) {
  int64_t decided = 0;
  for (int64_t c = 0; c < static_cast<int64_t>(logits.size()); ++c) {
    if (std::isnan(logits[c])) return kUndecided;
    if (logits[c] > logits[decided]) decided = c;
  }
  return decided;
}

// With one logit for two classes: the second class if the logit is 0 or more.
inline int64_t DecidedOfTwo(float logit) {
  if (std::isnan(logit)) return kUndecided;
  return logit >= 0 ? 1 : 0;
}

}  // namespace tributary
