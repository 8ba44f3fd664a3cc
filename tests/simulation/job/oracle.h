// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/partition_plan.h"
#include "server/store/parameter_shard.h"
#include "tests/simulation/job/disk.h"
#include "tests/simulation/job/model.h"
#include "tests/simulation/job/scenario.h"
#include "tests/simulation/world/world.h"

namespace tributary::simulation {

// The worker that reads weights, and the number of steps it has finished.
struct Reader {
  uint32_t rank = 0;
  int64_t finished = 0;
};

// Knows which weights are correct: bit-equal to the reference in a synchronous
// job, else tagged by exactly the contributions that they must contain. Reports
// a violation to the world if they are not.
class Oracle {
 public:
  Oracle(World* world, const Scenario& scenario, Model* model)
      : world_(world), scenario_(scenario), model_(model) {}

  // Checks a block's weights as a server answers with them. `reader`: the
  // worker whose step ends with this answer, or whose training starts with it.
  void Shown(const Block& block, int64_t version, const float* weights,
             const std::optional<Reader>& reader);
  // Checks a block's snapshot for a checkpoint.
  void Cut(const BlockCut& cut);
  // Checks a whole checkpoint when it is complete or is read.
  void Checkpoint(const WholeState& whole);
  // Checks the final weights of the job.
  void Final(int64_t step, const Tensors& weights);

 private:
  absl::Status CheckShown(const Block& block, int64_t version,
                          const float* weights,
                          const std::optional<Reader>& reader);
  absl::Status CheckTagged(const float* weights, int64_t version,
                           const std::optional<Reader>& reader) const;
  absl::Status CheckWhole(const WholeState& whole, bool with_state);
  void Judge(const std::string& what, const absl::Status& status);

  World* const world_;
  const Scenario& scenario_;
  Model* const model_;
};

}  // namespace tributary::simulation
