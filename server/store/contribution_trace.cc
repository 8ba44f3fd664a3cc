// SPDX-License-Identifier: Apache-2.0
#include "server/store/contribution_trace.h"

#include <utility>

namespace tributary {

ContributionTrace::ContributionTrace(TraceRecorder* recorder,
                                     const Block& block,
                                     const Contribution& contribution) {
  if (recorder == nullptr) return;
  step_ = recorder->StepOf(contribution.step);
  if (!recorder->Covers(step_)) return;
  recorder_ = recorder;
  block_ = &block;
  rank_ = contribution.rank;
  bytes_ = contribution.payload.size();
  arrived_micros_ = recorder->NowMicros();
}

TraceEvent ContributionTrace::Event(TraceKind kind, uint64_t bytes) const {
  if (recorder_ == nullptr) return {};
  return {.kind = kind,
          .step = step_,
          .shard = block_->shard,
          .block = block_->index,
          .rank = static_cast<int32_t>(rank_),
          .bytes = bytes};
}

void ContributionTrace::Checked() {
  if (recorder_ == nullptr) return;
  TraceEvent event = Event(TraceKind::kCheck, bytes_);
  event.begin_micros = arrived_micros_;
  event.end_micros = recorder_->NowMicros();
  recorder_->Add(event);
}

WeightsDone ContributionTrace::Answering(const WeightsDone& done) const {
  if (recorder_ == nullptr) return done;
  return [done, recorder = recorder_,
          event = Event(TraceKind::kAnswer,
                        static_cast<uint64_t>(block_->weights_bytes()))](
             absl::StatusOr<WeightsSnapshot> weights) {
    const TraceScope scope(weights.ok() ? recorder : nullptr, event);
    done(std::move(weights));
  };
}

TraceScope ContributionTrace::Updating(TraceKind kind, bool gathers) const {
  TraceEvent event = Event(kind, 0);
  if (gathers) event.rank = -1;
  return TraceScope(recorder_, event);
}

}  // namespace tributary
