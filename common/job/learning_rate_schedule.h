// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Returns the field, such as "cosine.t_max", that would set the schedule's
// length but is not set, so that the schedule lasts as long as the job; empty:
// no such field is unset.
std::string OpenLength(const v1::ScheduleSpec& spec);

// Returns the schedule with the field of OpenLength, if any, set to the job's
// steps.
v1::ScheduleSpec WithLength(v1::ScheduleSpec spec, int64_t total_steps);

// The learning rate of every optimizer step. A pure function of the step, so
// that every process computes the same rate, also after a restart.
class LearningRateSchedule {
 public:
  // `base_rate`: the optimizer's rate. `total_steps`: the job's steps, the
  // length of a schedule that names none. InvalidArgument when the warm-up
  // would not end before the schedule.
  static absl::StatusOr<LearningRateSchedule> Create(
      const v1::ScheduleSpec& spec, double base_rate, int64_t total_steps);

  // Step 0 is the first optimizer step.
  double At(int64_t step) const;

 private:
  LearningRateSchedule(v1::ScheduleSpec spec, double base_rate)
      : spec_(std::move(spec)), base_rate_(base_rate) {}

  double WarmUp(int64_t step, int64_t warmup) const;
  double Cosine(double progress, double eta_min) const;

  v1::ScheduleSpec spec_;  // with its lengths resolved
  double base_rate_;
};

}  // namespace tributary
