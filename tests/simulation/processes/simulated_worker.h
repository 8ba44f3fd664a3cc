// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/simulated_rank.h"

namespace tributary::simulation {

// A worker's process: its own rank and the ranks that it has taken over.
class SimulatedWorker final : public Process {
 public:
  SimulatedWorker(int64_t pid, std::string name, Context* context,
                  std::optional<uint32_t> wanted_index);

  void Start();
  const std::vector<std::unique_ptr<SimulatedRank>>& ranks() const {
    return ranks_;
  }

 protected:
  void LetGo() override;

 private:
  SimulatedRank* Add(std::optional<uint32_t> wanted_index);
  absl::Status Adopt(uint32_t rank);

  Context* const context_;
  std::vector<std::unique_ptr<SimulatedRank>> ranks_;  // its own rank first
};

}  // namespace tributary::simulation
