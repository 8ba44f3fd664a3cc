#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"

namespace tributary::simulation {

// What came of one seed.
struct Outcome {
  std::string violation;  // the first invariant that did not hold; empty: none
  std::string end;        // "done after step 12", or the job's last sentence
  int64_t events = 0;
  int64_t micros = 0;   // simulated
  uint64_t digest = 0;  // equal for equal runs
  FaultCounts faults;
};

// Runs one job with its troubles to its end. The same scenario gives the same
// outcome. `trace`: gets a line for whatever happens; null: nothing.
Outcome Simulate(
    const Scenario& scenario,
    const std::function<void(const std::string&)>& trace = nullptr);

}  // namespace tributary::simulation
