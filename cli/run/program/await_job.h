// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/jobs/job_register.h"
#include "coordinator/service/intake/job_intake.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Waits until a program has submitted its job. Calls `watch` about ten times a
// second. Aborted: `watch` returned the message. Cancelled: SIGINT, SIGTERM or
// StopJob. DeadlineExceeded: no program came within `timeout`.
absl::StatusOr<v1::JobSpec> AwaitJob(JobIntake& intake, absl::Duration timeout,
                                     const std::function<std::string()>& watch);

// Enters a job, whose program has not submitted it yet, into the register of
// this user. Null: it cannot be entered, or there is no register.
std::unique_ptr<JobRegister::Entry> RegisterWaiting(
    const std::string& name, const JobIntake& intake,
    const std::string& run_directory, bool encrypted);

// The exit code of a command that ends with this error.
int ExitCodeOf(const absl::Status& no_job);

}  // namespace tributary
