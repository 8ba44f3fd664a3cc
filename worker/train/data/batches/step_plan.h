// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/data_course.h"
#include "worker/train/data/batches/sampler.h"

namespace tributary {

// The micro-batches of one optimizer step: consecutive global batches of one
// epoch.
struct StepRange {
  int64_t epoch = 0;        // from 0
  int64_t first_batch = 0;  // within the epoch, from 0
  int64_t batches = 0;      // the last step of an epoch may have fewer
};

// Maps optimizer steps to samples, by the course of the job's training rows.
// Pure arithmetic; steps count from 0. Steps before the last stretch of the
// course belong to other jobs, so only their epochs are known.
class StepPlan {
 public:
  struct Options {
    BatchCut cut;
    int64_t accumulation = 1;  // micro-batches per step
    int64_t epochs = 0;        // exactly one of epochs and steps is set
    int64_t steps = 0;
    // The last stretch must have this cut and accumulation. If the course is
    // empty, such a stretch is the only one.
    DataCourse course = {};
  };

  static absl::StatusOr<StepPlan> Create(const Options& options);

  int64_t total_steps() const { return total_steps_; }
  int64_t steps_per_epoch() const { return course_.steps_per_epoch(); }
  const DataCourse& course() const { return course_; }
  const BatchCut& cut() const { return cut_; }
  int64_t batches_per_epoch() const { return cut_.batches_per_epoch(); }

  StepRange At(int64_t step) const;
  // One rank's samples of a step.
  int64_t RankSamples(int64_t step, int rank) const;
  // All ranks' samples of a step.
  int64_t AllSamples(int64_t step) const;

 private:
  StepPlan(const BatchCut& cut, DataCourse course, int64_t total_steps)
      : cut_(cut), course_(std::move(course)), total_steps_(total_steps) {}

  BatchCut cut_;
  DataCourse course_;
  int64_t total_steps_;
};

}  // namespace tributary
