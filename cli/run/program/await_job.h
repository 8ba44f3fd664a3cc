// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/service/intake/job_intake.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Waits until a program has submitted its job. Calls `watch` about ten times a
// second. Aborted, with the text: `watch` returned one. Cancelled: SIGINT or
// SIGTERM. DeadlineExceeded: no program came within `timeout`.
absl::StatusOr<v1::JobSpec> AwaitJob(JobIntake& intake, absl::Duration timeout,
                                     const std::function<std::string()>& watch);

// The exit code of a command that ends with this error.
int ExitCodeOf(const absl::Status& no_job);

}  // namespace tributary
