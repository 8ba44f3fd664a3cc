// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/terminal/step_range.h"
#include "cli/trace/recorded_trace.h"

namespace tributary {

// Returns these steps of a recorded trace in Chrome's "Trace Event Format",
// which ui.perfetto.dev and chrome://tracing read. Each process of the run is a
// process of the trace. Times are of the coordinator's clock, in microseconds
// since the first event. Arrows lead from a worker's push to the server's check
// and from the server's answer back. `otherData` has each process's clock
// offset with its uncertainty, and the number of lost events.
std::string ChromeTrace(const RecordedTrace& trace, const StepNumbers& steps);

}  // namespace tributary
