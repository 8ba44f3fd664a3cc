// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "cli/replay/replay_steps.h"

namespace tributary {

// Reads the files that the probes of `workers` ranks have written
// (step_probe.h), for each step from first_step to last_step. losses: those of
// the same steps. DataLoss: a step of a rank is missing. InvalidArgument: a
// line is not a JSON object.
absl::StatusOr<std::map<int64_t, ReplayedStep>> ReadProbes(
    const std::string& folder, int workers,
    const std::map<int64_t, double>& losses, int64_t first_step,
    int64_t last_step);

}  // namespace tributary
