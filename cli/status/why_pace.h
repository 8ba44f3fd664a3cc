// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/status/why.h"

namespace tributary {

// Seconds of the longest last step of a worker; 0: no step has ended yet.
double SecondsAStep(const WhyFacts& facts);
// Seconds that the job takes for a step by its rate of samples, which is a mean
// of some seconds; as above where it has none.
double MeanSecondsAStep(const WhyFacts& facts);

// Why the steps of an advancing job are slow, if one thing stands out: a
// worker that computes or reads much longer than the others, updates of the
// servers, or links. Judges the workers' last steps, and whom the servers have
// waited for in the samples. Steps below kSlowSeconds are never slow.
std::optional<WhyAnswer> ExplainPace(const WhyFacts& facts);

inline constexpr double kSlowSeconds = 0.1;

}  // namespace tributary
