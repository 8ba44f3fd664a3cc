// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/status/why.h"

namespace tributary {

// Seconds of the longest last step of a worker; 0: no step has ended yet.
double SecondsAStep(const WhyFacts& facts);
// Seconds per step by the job's rate of samples, which is a mean over some
// seconds; SecondsAStep if there is no rate.
double MeanSecondsAStep(const WhyFacts& facts);

// Says why the steps of an advancing job are slow, if one thing stands out: a
// worker that computes or reads much longer than the others, updates of the
// servers, or links. Judges by the workers' last steps and by the ranks that
// servers have waited for in the samples. Steps below kSlowSeconds are never
// slow.
std::optional<WhyAnswer> ExplainPace(const WhyFacts& facts);

inline constexpr double kSlowSeconds = 0.1;

}  // namespace tributary
