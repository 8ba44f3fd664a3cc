// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/status/why.h"

namespace tributary {

// Seconds that the job takes for a step now; 0: no step has ended yet. From the
// samples if steps have ended between them, else the longest last step.
double SecondsAStep(const WhyFacts& facts);

// What makes the steps of an advancing job slow, if one thing stands out: a
// worker that computes or reads much longer than the others, updates of the
// servers, or links. Judges the workers' last steps, and whom the servers have
// waited for in the samples. Steps below kSlowSeconds are never slow.
std::optional<WhyAnswer> ExplainPace(const WhyFacts& facts);

inline constexpr double kSlowSeconds = 0.1;

}  // namespace tributary
