// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/core/job_plan.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The checkpoint from which a command continues.
struct ResumePoint {
  std::string folder;
  JobStart start;  // with the manifest
  // The job of the named run directory, which may differ from the job of the
  // checkpoint that the run began with; otherwise the checkpoint's job.
  v1::JobSpec job;

  std::string job_file;  // of the run; may be missing or another job's

  // The name of the job in errors: its file, in which a user can look, if that
  // file has the same text.
  std::string JobName() const;
};

// Finds the checkpoint that `path` means (checkpoint_place.h). Prints on
// standard error which incomplete ones are passed over. Fails when the
// checkpoint is damaged or, with a `key`, lacks the right keyed checksum.
// InvalidArgument: `run_dir`, the directory of the new run, is that of the old.
absl::StatusOr<ResumePoint> FindResumePoint(const std::string& path,
                                            const std::string& key = "",
                                            const std::string& run_dir = "");

// Removes model.initialize_from and its settings from a job. The file is read
// only before the first step, so a job that continues does not need it.
void LeaveOutInitialWeights(v1::JobSpec* job);

// Returns the job of the checkpoint with these overrides, whose relative paths
// start from the current directory. The file of its initial weights may be
// gone. Errors as ParseJob (job_file.h).
absl::StatusOr<v1::JobSpec> ResumedJob(
    const ResumePoint& point, const std::vector<std::string>& overrides);

// FailedPrecondition: the job cannot continue from there. Prints on standard
// error which settings of the training differ from the checkpoint's.
absl::Status CheckResumes(const v1::JobSpec& job, const ResumePoint& point);

}  // namespace tributary
