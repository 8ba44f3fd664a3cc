// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_rates.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<ProgramRates>> ProgramRates::Create(
    const v1::JobSpec& job, int64_t total_steps) {
  TRIBUTARY_ASSIGN_OR_RETURN(LearningRateSchedule schedule,
                             LearningRateScheduleOf(job, total_steps));
  TRIBUTARY_ASSIGN_OR_RETURN(std::vector<ParameterGroup> groups,
                             ParameterGroupsOf(job, total_steps));
  return std::unique_ptr<ProgramRates>(
      new ProgramRates(std::move(schedule), std::move(groups)));
}

absl::Status ProgramRates::Give(std::vector<double> rates) {
  const size_t wanted = 1 + groups_.size();
  if (!rates.empty() && rates.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(rates.size(), " learning rates, wanted ", wanted,
                     ": that of training.optimizer and those of the parameter "
                     "groups"));
  }
  for (const double rate : rates) {
    if (std::isfinite(rate) && rate >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "learning rate ", rate, ", wanted a finite number of 0 or more"));
  }
  given_ = std::move(rates);
  return absl::OkStatus();
}

double ProgramRates::At(int64_t step) const {
  return given_.empty() ? schedule_.At(step) : given_[0];
}

std::vector<ParameterGroup> ProgramRates::Groups() const {
  std::vector<ParameterGroup> groups = groups_;
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].learning_rate = [this, g](int64_t step) {
      return given_.empty() ? groups_[g].learning_rate(step) : given_[g + 1];
    };
  }
  return groups;
}

}  // namespace tributary
