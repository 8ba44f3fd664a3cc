#pragma once

#include <cstdint>

#include "coordinator/core/job_state.h"
#include "coordinator/service/job_checkpoints.h"
#include "coordinator/service/job_update.h"
#include "coordinator/service/worker_reports.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// "waiting", "running", "stopping", "done", "failed"; else "unknown".
const char* PhaseWord(v1::JobPhase phase);

// What `tributary status` shows of a job and its members, without phase and
// message.
v1::JobStatusResponse JobStatusOf(const JobState& state,
                                  const WorkerReports& reports,
                                  const JobCheckpoints& checkpoints,
                                  int64_t now_micros);

JobTotals JobTotalsOf(const JobState& state, const WorkerReports& reports,
                      const JobCheckpoints& checkpoints);

}  // namespace tributary
