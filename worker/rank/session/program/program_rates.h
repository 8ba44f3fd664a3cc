// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/learning_rate_schedule.h"
#include "common/optimizer/parameter_group.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The learning rates of a program's steps: those that the program gives, or
// those of the job's schedules.
class ProgramRates {
 public:
  // Errors as in LearningRateSchedule and ParameterGroupsOf.
  static absl::StatusOr<std::unique_ptr<ProgramRates>> Create(
      const v1::JobSpec& job, int64_t total_steps);

  // Sets the rates of the step that begins: training.optimizer's, then one for
  // each of training.parameter_groups; empty: the job's. InvalidArgument: the
  // number of rates is wrong, or one is negative or not finite.
  absl::Status Give(std::vector<double> rates);
  const std::vector<double>& given() const { return given_; }

  // The rate of training.optimizer in a step, counted from 0.
  double At(int64_t step) const;
  // The job's groups with their rates in this object, which must outlive them.
  std::vector<ParameterGroup> Groups() const;

 private:
  ProgramRates(LearningRateSchedule schedule,
               std::vector<ParameterGroup> groups)
      : schedule_(std::move(schedule)), groups_(std::move(groups)) {}

  const LearningRateSchedule schedule_;
  const std::vector<ParameterGroup> groups_;
  std::vector<double> given_;
};

}  // namespace tributary
