#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The checkpoint that a job goes on from.
struct GoesOnFrom {
  v1::JobSpec job;  // whose it is
  int64_t step = 0;
  int64_t steps_per_epoch = 0;
  bool has_state = false;  // it holds an optimizer's state
};

// FailedPrecondition, with what to do, when `job` cannot go on exactly where
// the checkpoint stands: its optimizer keeps other states, it ends before that
// step, or it uses local_sgd, where the servers' state is that of the outer
// optimizer and an update closes a whole period.
absl::Status CheckGoesOn(const v1::JobSpec& job, const GoesOnFrom& from);

}  // namespace tributary
