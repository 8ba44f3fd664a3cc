// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

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

  std::string job_file;  // of the run; it may not exist, or be another job's

  // The name of the job in errors: its file, in which a user can look, if the
  // text there is the same.
  std::string JobName() const;
};

// The checkpoint that `path` means (checkpoint_place.h). Tells on standard
// error which incomplete ones are passed over. An error when it is damaged or,
// with a `key`, lacks the right keyed checksum.
absl::StatusOr<ResumePoint> FindResumePoint(const std::string& path,
                                            const std::string& key = "");

// Takes model.initialize_from and what goes with it out of a job. Its file is
// read before the first step alone, so a job that goes on does not need it.
void LeaveOutInitialWeights(v1::JobSpec* job);

// The job of the checkpoint with these overrides, whose relative paths start
// from the current directory. The file of its initial weights may be gone.
// Errors as ParseJob (job_file.h).
absl::StatusOr<v1::JobSpec> ResumedJob(
    const ResumePoint& point, const std::vector<std::string>& overrides);

// FailedPrecondition: the job cannot go on from there. Tells on standard error
// which settings of the training are not those of the checkpoint.
absl::Status CheckResumes(const v1::JobSpec& job, const ResumePoint& point);

}  // namespace tributary
