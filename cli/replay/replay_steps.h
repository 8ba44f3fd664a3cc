// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/replay/recorded_run.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The results of a rank in a replayed step
// (worker/train/trainer/step_probe.h).
struct ReplayedRank {
  struct Tensor {
    std::string name;
    // The norm of the rank's own gradient; nullopt: it has no samples.
    std::optional<double> gradient_norm;  // NaN: not finite
    std::optional<uint32_t> gradient_crc;
    uint32_t weight_crc = 0;  // after the step
  };
  int rank = 0;
  std::optional<int64_t> samples;   // nullopt: the rank reports none
  std::optional<double> loss_mean;  // over its samples
  std::vector<Tensor> tensors;      // in the model's order
};

struct ReplayedStep {
  double loss = 0;                  // of all samples, as metrics.jsonl has it
  std::vector<ReplayedRank> ranks;  // by rank
};

// Steps of a run, computed again on this machine.
struct ReplayedSteps {
  std::map<int64_t, ReplayedStep> steps;  // from 1
  RecordedState from;                     // empty path: the initial weights
  RecordedState after;                    // the checkpoint after the last step
  nlohmann::json environment;             // environment.json of the replay
  std::shared_ptr<void> files;            // keeps `after` on disk
};

// OK when the steps of this run's job depend on the job alone, and this machine
// can compute them. Otherwise InvalidArgument, with one sentence.
absl::Status CheckReplayable(const RecordedRun& run);

// OK when a state exists from which step `first_step` can be computed: a
// checkpoint before it, or the initial weights if the run was not resumed. (The
// earlier steps of a resumed run may be of another job.) Otherwise
// InvalidArgument, with one sentence.
absl::Status CheckStartIsLeft(const RecordedRun& run, int64_t first_step);

// Returns the job that computes the same bits up to `last_step`: without
// evaluations, with one checkpoint after that step, and, if the strategy
// promises the same bits (docs/consistency.md), with all ranks in one process.
v1::JobSpec JobToReplay(const RecordedRun& run, int64_t last_step);

// Computes the steps first_step to last_step of the run again, from the newest
// checkpoint before first_step or from the initial weights. Writes only into a
// temporary directory. CheckReplayable must be OK; call Interrupts::Install
// first. Cancelled: interrupted. InvalidArgument: a file that the steps need is
// gone or does not fit. Other errors say what has failed; the run of the steps
// has printed its own error.
absl::StatusOr<ReplayedSteps> ReplaySteps(const RecordedRun& run,
                                          int64_t first_step,
                                          int64_t last_step);

}  // namespace tributary
