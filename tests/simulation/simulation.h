// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/job/scenario.h"
#include "tests/simulation/world/network.h"

namespace tributary::simulation {

// The result of simulating one seed.
struct Outcome {
  std::string violation;  // the first violated invariant, or empty
  std::string end;        // "done after step 12", or the job's last error
  int64_t events = 0;
  int64_t micros = 0;   // simulated time
  uint64_t digest = 0;  // equal for equal runs
  FaultCounts faults;
};

// Runs one job with its faults to its end. The same scenario gives the same
// outcome. `trace` gets a line for every event; may be null.
Outcome Simulate(
    const Scenario& scenario,
    const std::function<void(const std::string&)>& trace = nullptr);

}  // namespace tributary::simulation
