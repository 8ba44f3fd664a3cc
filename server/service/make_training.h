// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/data_course.h"
#include "server/store/shard_training.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// How the servers of a resolved job train. `course`: Plan.course; empty: the
// workers do not meet at evaluations. InvalidArgument: the errors of
// LearningRateSchedule::Create.
absl::StatusOr<ShardTraining> MakeTraining(const v1::JobSpec& job,
                                           int64_t total_steps,
                                           DataCourse course = {});

}  // namespace tributary
