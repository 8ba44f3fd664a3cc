// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/plan/partition_plan.h"
#include "common/trace/trace_recorder.h"
#include "server/aggregate/gradient_aggregator.h"
#include "server/store/weights_snapshot.h"

namespace tributary {

// Records what a shard does with one contribution, if its step is traced.
class ContributionTrace {
 public:
  // Starts when the contribution arrives. `recorder` may be null; it and
  // `block` outlive the answer.
  ContributionTrace(TraceRecorder* recorder, const Block& block,
                    const Contribution& contribution);

  // Call it when the contribution has been checked: its rank is valid then.
  void Checked();
  // Returns a callback that calls `done` and records its duration and bytes.
  WeightsDone Answering(const WeightsDone& done) const;
  // Traces the update that this contribution completes. gathers: the update
  // applies the contributions of all ranks; otherwise only this one.
  TraceScope Updating(TraceKind kind, bool gathers) const;

 private:
  TraceEvent Event(TraceKind kind, uint64_t bytes) const;

  TraceRecorder* recorder_ = nullptr;  // null: the step is not traced
  const Block* block_ = nullptr;
  int64_t step_ = 0;
  uint32_t rank_ = 0;
  uint64_t bytes_ = 0;
  int64_t arrived_micros_ = 0;
};

}  // namespace tributary
