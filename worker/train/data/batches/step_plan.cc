// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/step_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<StepPlan> StepPlan::Create(const Options& options) {
  TRIBUTARY_RETURN_IF_ERROR(options.cut.Validate());
  if (options.accumulation < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted at least 1 micro-batch a step, got ", options.accumulation));
  }
  const bool by_epochs = options.epochs > 0 && options.steps == 0;
  const bool by_steps = options.steps > 0 && options.epochs == 0;
  if (!by_epochs && !by_steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted either epochs or steps of at least 1, got ",
                     options.epochs, " epochs and ", options.steps, " steps"));
  }
  DataCourse course = options.course;
  if (course.empty()) {
    course = DataCourse(DataStretch{.rows = options.cut.rows,
                                    .global_batch = options.cut.global_batch,
                                    .accumulation = options.accumulation});
  }
  const std::optional<int64_t> total =
      by_epochs ? course.StepsOf(options.epochs) : options.steps;
  if (!total) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.epochs, " epochs of ", course.steps_per_epoch(),
                     " steps are more steps than can be counted"));
  }
  return StepPlan(options.cut, std::move(course), *total);
}

StepRange StepPlan::At(int64_t step) const {
  TRIBUTARY_CHECK(step >= 0);
  const DataPosition at = course_.After(step);
  StepRange range;
  range.epoch = at.epoch;
  range.first_batch = at.row / cut_.global_batch;
  range.batches = std::min(course_.last().accumulation,
                           cut_.batches_per_epoch() - range.first_batch);
  return range;
}

int64_t StepPlan::RankSamples(int64_t step, int rank) const {
  const StepRange range = At(step);
  int64_t samples = 0;
  for (int64_t i = 0; i < range.batches; ++i) {
    samples += cut_.RankRows(range.first_batch + i, rank);
  }
  return samples;
}

int64_t StepPlan::AllSamples(int64_t step) const {
  const StepRange range = At(step);
  int64_t samples = 0;
  for (int64_t i = 0; i < range.batches; ++i) {
    samples += cut_.GlobalRows(range.first_batch + i);
  }
  return samples;
}

}  // namespace tributary
