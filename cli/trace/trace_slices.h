// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/step_range.h"
#include "cli/trace/recorded_trace.h"
#include "common/trace/trace_event.h"

namespace tributary {

// One bar of a drawn trace.
struct TraceSlice {
  std::string name;
  std::string category;    // the event's kind, or "step", "push" or "wait"
  TraceEvent event;        // its times are of the coordinator's clock
  std::vector<int> ranks;  // for "wait": the ranks waited for
};

// Slices that are drawn in one row: the first one encloses the others.
using SliceGroup = std::vector<TraceSlice>;

// A row of a drawn process. Its groups are in order and do not overlap.
struct TraceLane {
  std::string name;
  std::vector<SliceGroup> groups;
};

// Draws these steps of a process. Groups that overlap get several lanes.
// A worker has lanes for the thread that trains, for communication and the
// optimizer beside it, and for its blocks: queued, sent, answered. A server has
// lanes for its work and for the waits of its blocks. The waits are not
// recorded: they follow from the contributions and the update.
std::vector<TraceLane> LanesOf(const TracedProcess& process,
                               const StepNumbers& steps);

}  // namespace tributary
