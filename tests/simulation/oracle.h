#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/partition_plan.h"
#include "server/store/parameter_shard.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/model.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace tributary::simulation {

// Who reads weights, and how many steps it has finished.
struct Reader {
  uint32_t rank = 0;
  int64_t finished = 0;
};

// Knows what weights may look like: bit-equal to the reference in a synchronous
// job, else signed by exactly the contributions that must be in them. Violates
// the world when they do not.
class Oracle {
 public:
  Oracle(World* world, const Scenario& scenario, Model* model)
      : world_(world), scenario_(scenario), model_(model) {}

  // A block as a server shows it; `reader`: the worker whose step this ends or
  // whose training it begins.
  void Shown(const Block& block, const WeightsSnapshot& weights,
             const std::optional<Reader>& reader);
  // A block as it goes into a checkpoint.
  void Cut(const BlockCut& cut);
  // A whole checkpoint, as it is complete or as it is read.
  void Checkpoint(const WholeState& whole);
  // The end of the job.
  void Final(int64_t step, const Tensors& weights);

 private:
  absl::Status CheckShown(const Block& block, const WeightsSnapshot& weights,
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
