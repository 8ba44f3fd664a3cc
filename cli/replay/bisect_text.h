// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/replay/bisect.h"
#include "cli/replay/recorded_run.h"

namespace tributary {

// The result for a person: the first step, the first tensor and the cause, in a
// few sentences without line breaks.
std::string BisectionText(const Bisection& found, const RecordedRun& a,
                          const RecordedRun& b);

// The same as JSON (docs/comparing-runs.md), with the text as "text".
std::string BisectionJson(const Bisection& found, const RecordedRun& a,
                          const RecordedRun& b);

}  // namespace tributary
