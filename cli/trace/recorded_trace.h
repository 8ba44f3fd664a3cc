// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/trace/clock_offset.h"
#include "common/trace/trace_event.h"

namespace tributary {

// One process of a traced run.
struct TracedProcess {
  bool is_server = false;
  int index = 0;
  uint64_t incarnation = 0;
  std::string host;
  // Equal on processes that read the same clock; empty: unknown.
  std::string clock;
  // From its clock to the coordinator's clock: the most certain estimate of all
  // processes with the same clock, so that their events stay in exact order.
  ClockOffset::Estimate offset;
  std::vector<TraceEvent> events;  // by its own clock, in the recorded order
  uint64_t lost = 0;               // events that are not in the file

  // "server 0", "worker 1".
  std::string Name() const;
};

// The contents of trace.jsonl.
struct RecordedTrace {
  std::vector<TracedProcess> processes;  // servers, then workers, by index
  bool full = false;                     // the file had reached its limit

  std::set<int64_t> Steps() const;  // from 1
  uint64_t lost() const;
};

// Reads the trace of a run directory. NotFound: the run recorded none.
// InvalidArgument: a line is not a JSON object. Events with impossible numbers
// count as lost.
absl::StatusOr<RecordedTrace> ReadRecordedTrace(const std::string& folder);

}  // namespace tributary
