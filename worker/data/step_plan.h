// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/data/sampler.h"

namespace tributary {

// The micro-batches of one optimizer step: consecutive global batches of one
// epoch.
struct StepRange {
  int64_t epoch = 0;        // from 0
  int64_t first_batch = 0;  // within the epoch, from 0
  int64_t batches = 0;      // the last step of an epoch may have fewer
};

// Maps optimizer steps to samples. Pure arithmetic; steps count from 0.
class StepPlan {
 public:
  struct Options {
    BatchCut cut;
    int64_t accumulation = 1;  // micro-batches per step
    int64_t epochs = 0;        // exactly one of epochs and steps is set
    int64_t steps = 0;
  };

  static absl::StatusOr<StepPlan> Create(const Options& options);

  int64_t total_steps() const { return total_steps_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  const BatchCut& cut() const { return cut_; }
  int64_t batches_per_epoch() const { return cut_.batches_per_epoch(); }

  StepRange At(int64_t step) const;
  // One rank's samples of a step.
  int64_t RankSamples(int64_t step, int rank) const;
  // All ranks' samples of a step.
  int64_t AllSamples(int64_t step) const;

 private:
  StepPlan(const Options& options, int64_t steps_per_epoch, int64_t total_steps)
      : cut_(options.cut),
        accumulation_(options.accumulation),
        steps_per_epoch_(steps_per_epoch),
        total_steps_(total_steps) {}

  BatchCut cut_;
  int64_t accumulation_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
};

}  // namespace tributary
