// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/data_course.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Returns how a job with a model of its own takes epochs of `rows` rows from
// the beginning, in the order of rows in memory.
DataStretch StretchOf(const v1::JobSpec& job, int64_t rows);

// Returns how the job of a checkpoint has taken its rows. For a checkpoint of
// an earlier version the course is computed from the job, whose batches were
// then the same from step 0 on. Empty: a program trained and its course is
// unknown, or the course contradicts itself.
DataCourse CourseOf(const v1::CheckpointManifest& manifest);

// The course of a job that continues `before` after `step` steps and then takes
// its rows as `now` says; the beginning of `now` is ignored. If `before` is
// empty, the job has taken its rows in this way from step 0 on.
//
// FailedPrecondition, with advice, if the remaining rows of the current epoch
// cannot be taken in this way: the rows or their order differ, or they do not
// begin with a whole batch.
absl::StatusOr<DataCourse> GoOn(const v1::JobSpec& job,
                                const DataCourse& before, int64_t step,
                                DataStretch now);

using SavedCourse = google::protobuf::RepeatedPtrField<v1::DataStretch>;
// InvalidArgument: the stretches contradict themselves.
absl::StatusOr<DataCourse> CourseFromProto(const SavedCourse& saved);
void CourseToProto(const DataCourse& course, SavedCourse* saved);

}  // namespace tributary
