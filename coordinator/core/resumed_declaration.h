// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/data_course.h"
#include "common/job/job_course.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// InvalidArgument: the declared course contradicts itself. FailedPrecondition,
// with advice: the checkpoint has no course, and the program now has another
// number of ranks, so its position in the data is unknown. manifest: of the
// checkpoint from which the job continues; null: there is no checkpoint.
absl::Status CheckCourse(const v1::DeclareModelRequest& request,
                         const v1::JobSpec& job,
                         const v1::CheckpointManifest* manifest);

// Describes how another rank's course differs from the first, for example "a
// global batch of ... instead of ..."; empty: one course continues the other.
std::string CourseDifference(const SavedCourse& first,
                             const SavedCourse& other);

// The following functions return notices about a job that continues from a
// checkpoint; empty: there is nothing to say.
//
// BatchChange: a step takes other rows from `start_step` on.
std::string BatchChange(const DataCourse& course, int64_t start_step,
                        int64_t total_steps);
// The learning rate of the next step differs from what the checkpoint's job
// would have had there.
std::string RateChange(const v1::JobSpec& job, int64_t total_steps,
                       const v1::CheckpointManifest& manifest);
// The job validates on a fraction of the training rows, and the checkpoint's
// job may have trained on these rows. other_rows: the training rows are not the
// checkpoint's.
std::string ValidationChange(const v1::JobSpec& job, bool other_rows,
                             const v1::CheckpointManifest& manifest);
// The checkpoint has no course, and the program has another number of ranks.
std::string RanksChange(const v1::JobSpec& job,
                        const v1::CheckpointManifest& manifest);

}  // namespace tributary
