// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/data_course.h"
#include "common/base/parameter_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The checkpoint that a job continues from.
struct GoesOnFrom {
  v1::JobSpec job;  // the checkpoint's job
  int64_t step = 0;
  bool has_state = false;  // it holds optimizer state
  DataCourse course = {};  // empty: unknown
  ParameterSpecs parameters = {};
};

// FailedPrecondition, with advice, when `job` cannot continue exactly from the
// checkpoint: its optimizer has other states, or corrects by the step's number
// the states of a parameter that is no longer frozen; it ends before that step;
// its batches do not fit the remaining rows of the epoch; or local_sgd prevents
// it, with which the servers' state is the outer optimizer's and an update
// completes a whole period.
absl::Status CheckGoesOn(const v1::JobSpec& job, const GoesOnFrom& from);

}  // namespace tributary
