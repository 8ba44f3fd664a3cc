// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/core/job_plan.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The checkpoint that a command goes on from.
struct ResumePoint {
  std::string folder;
  JobStart start;  // with the manifest
  // The job of the named run directory, which may differ from the job of the
  // checkpoint that the run began with; otherwise the checkpoint's job.
  v1::JobSpec job;

  // The name of the job in errors. A user can look into job.yaml of the run, so
  // it is that file if its text is the same.
  std::string JobName() const;
};

// The checkpoint that `path` means (checkpoint_place.h). Tells on standard
// error which incomplete ones are passed over. An error when it is damaged or,
// with a `key`, lacks the right keyed checksum.
absl::StatusOr<ResumePoint> FindResumePoint(const std::string& path,
                                            const std::string& key = "");

// FailedPrecondition: the job cannot go on from there. Tells on standard error
// which settings of the training are not those of the checkpoint.
absl::Status CheckResumes(const v1::JobSpec& job, const ResumePoint& point);

}  // namespace tributary
