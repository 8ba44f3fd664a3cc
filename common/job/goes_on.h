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
// checkpoint: its optimizer has other states; a parameter is no longer frozen
// and the optimizer corrects states by the step's number; the job ends before
// that step; its batches do not fit the remaining rows of the epoch; the step
// is within a period of local_sgd; or only one of the two jobs uses local_sgd,
// with which the state is that of the outer optimizer.
absl::Status CheckGoesOn(const v1::JobSpec& job, const GoesOnFrom& from);

}  // namespace tributary
