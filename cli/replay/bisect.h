// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/replay/environment_difference.h"
#include "cli/replay/final_weights.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_steps.h"
#include "common/job/job_difference.h"

namespace tributary {

// Where two runs first differ, and why.
struct Bisection {
  // Where the first difference was seen.
  enum class Seen { kNowhere, kModel, kLoss, kGradient, kWeights };
  struct DifferencePoint {
    Seen seen = Seen::kNowhere;
    int64_t step = 0;    // from 1
    std::string tensor;  // the first in the model's order; empty: unknown
    int rank = -1;       // of a gradient
    // For kWeights: the gradients of this step were compared and are equal.
    bool equal_gradients = false;
    // Elements of the tensor, and those that differ; 0 if not compared.
    int64_t elements = 0;
    int64_t different = 0;
    std::string where;    // the record with the tensor; empty: a replay
    int64_t seen_at = 0;  // the step of that record
    double loss_a = 0;    // of kLoss
    double loss_b = 0;
  };
  // A run whose record differs from what its own job computes on this machine.
  struct Deviation {
    DifferencePoint place;
    std::vector<EnvironmentDifference> here;  // a: run, b: replay
    // The run's file of final weights was changed. Nothing was computed again.
    std::optional<ChangedWeights> changed = {};
  };

  bool equal() const { return place.seen == Seen::kNowhere; }

  DifferencePoint place;
  int64_t steps = 0;   // that both runs have recorded
  int64_t last_a = 0;  // the last recorded step of each
  int64_t last_b = 0;
  int states = 0;           // checkpoints and weights that were compared
  int64_t equal_up_to = 0;  // the last step with equal states; 0: none
  std::string models;       // of kModel: how they differ
  std::vector<JobDifference> job;
  std::vector<EnvironmentDifference> environment;
  // The first sample that differs, as `tributary-worker --compare-data` prints
  // it; empty: none differs, or the data are not available.
  nlohmann::json sample;
  bool replayed = false;     // the steps were computed again
  std::string not_replayed;  // why they were not
  std::optional<Deviation> deviation_a;
  std::optional<Deviation> deviation_b;
};

// The functions by which Bisect uses this machine; a test gives its own.
struct BisectTools {
  // Calls ReplaySteps for the first to the last step.
  std::function<absl::StatusOr<ReplayedSteps>(const RecordedRun&, int64_t,
                                              int64_t)>
      replay;
  // Returns the first sample in which the data of two jobs differ, as JSON.
  std::function<absl::StatusOr<std::string>(const RecordedRun&,
                                            const RecordedRun&)>
      compare_data;
  std::function<void(const std::string&)> note;  // progress, for a person
};

// Finds the first step and tensor in which the runs differ: first from their
// records, then by computing both again from the last step in which their
// records are equal. FailedPrecondition: they have nothing in common to
// compare. Cancelled: interrupted. Errors of a damaged record name it.
absl::StatusOr<Bisection> Bisect(const RecordedRun& a, const RecordedRun& b,
                                 const BisectTools& tools);

}  // namespace tributary
