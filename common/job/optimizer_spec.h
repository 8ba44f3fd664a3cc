// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/learning_rate_schedule.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/parameter_group.h"
#include "common/schema/field_rule.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The optimizer and the parameter groups of a job file, as the kinds of
// common/optimizer define them.

// The rules of the fields of all kinds. If two kinds share a message, the first
// kind's rules come first.
std::vector<FieldRule> OptimizerRules();

// Fills the defaults of the kind, which may differ between two kinds with the
// same message.
void ResolveOptimizer(v1::OptimizerSpec* spec);

// The plain values of a resolved optimizer (ReadJobFile).
OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec);

// "adam"; empty when no kind is chosen.
std::string OptimizerName(const v1::OptimizerSpec& spec);

// Whether the optimizer needs norms of whole tensors.
bool NeedsWholeTensors(const v1::OptimizerSpec& spec);

// "training.parameter_groups.2"
std::string ParameterGroupPath(int group);

// Gives every group the fields of training.optimizer that it does not write.
// The optimizer is resolved. InvalidArgument: a group has another kind of
// optimizer.
absl::Status ResolveParameterGroups(const Places& places,
                                    v1::TrainingSpec* training);

// The learning rates of training.optimizer in a resolved job. Errors as in
// LearningRateSchedule::Create.
absl::StatusOr<LearningRateSchedule> LearningRateScheduleOf(
    const v1::JobSpec& job, int64_t total_steps);

// The groups of a resolved job, each with its schedule. Errors as in
// LearningRateSchedule::Create.
absl::StatusOr<std::vector<ParameterGroup>> ParameterGroupsOf(
    const v1::JobSpec& job, int64_t total_steps);

}  // namespace tributary
