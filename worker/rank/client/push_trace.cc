// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/push_trace.h"

namespace tributary {

PushTrace::PushTrace(TraceRecorder* recorder, int64_t contribution,
                     const Block& block)
    : block_(block) {
  if (recorder == nullptr) return;
  step_ = recorder->StepOf(contribution);
  if (!recorder->Covers(step_)) return;
  recorder_ = recorder;
  given_micros_ = recorder->NowMicros();
}

void PushTrace::Sent() {
  if (recorder_ == nullptr || sent_micros_ > 0) return;
  sent_micros_ = recorder_->NowMicros();
}

void PushTrace::Answered() {
  if (recorder_ == nullptr) return;
  answered_micros_ = recorder_->NowMicros();
}

void PushTrace::Stored() {
  if (recorder_ == nullptr) return;
  const int64_t now = recorder_->NowMicros();
  Add(TraceKind::kQueue, given_micros_, sent_micros_, block_.gradient_bytes());
  Add(TraceKind::kFlight, sent_micros_, answered_micros_,
      block_.gradient_bytes());
  Add(TraceKind::kStore, answered_micros_, now, block_.weights_bytes());
}

void PushTrace::Add(TraceKind kind, int64_t begin_micros, int64_t end_micros,
                    int64_t bytes) {
  recorder_->Add({.kind = kind,
                  .step = step_,
                  .shard = block_.shard,
                  .block = block_.index,
                  .begin_micros = begin_micros,
                  .end_micros = end_micros,
                  .bytes = static_cast<uint64_t>(bytes)});
}

}  // namespace tributary
