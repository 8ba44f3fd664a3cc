// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/plan/partition_plan.h"
#include "common/trace/trace_recorder.h"

namespace tributary {

// Records the way of one block from a worker to its server and back, if its
// step is traced. The calls come in order, one at a time.
class PushTrace {
 public:
  // Starts when the block is handed over. `recorder` may be null.
  PushTrace(TraceRecorder* recorder, int64_t contribution, const Block& block);

  // Call this when the message is made and is sent now. Only the first counts.
  void Sent();
  void Answered();
  // Call this when the answer's weights are in the model. Ends the trace.
  void Stored();

 private:
  void Add(TraceKind kind, int64_t begin_micros, int64_t end_micros,
           int64_t bytes);

  TraceRecorder* recorder_ = nullptr;  // null: the step is not traced
  const Block& block_;
  int64_t step_ = 0;
  int64_t given_micros_ = 0;
  int64_t sent_micros_ = 0;
  int64_t answered_micros_ = 0;
};

}  // namespace tributary
