// SPDX-License-Identifier: Apache-2.0
#include "common/job/goes_on.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "common/job/optimizer_spec.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/parameter_group.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

bool HasLocalSgd(const v1::JobSpec& job) {
  return SyncTraitsOf(job).updates_locally;
}

bool HasSameRows(const v1::DataSpec& a, const v1::DataSpec& b) {
  return a.train().SerializeAsString() == b.train().SerializeAsString() &&
         a.validation().SerializeAsString() ==
             b.validation().SerializeAsString();
}

// The job's course as far as it is known before its data are read. The workers
// check it again once they know the number of rows and, with data.stream, the
// windows within which rows are shuffled.
absl::StatusOr<DataCourse> ExpectedCourse(const v1::JobSpec& job,
                                          const GoesOnFrom& from) {
  DataStretch now = StretchOf(job, from.course.last().rows);
  if (job.data().shuffle().SerializeAsString() ==
      from.job.data().shuffle().SerializeAsString()) {
    now.order = from.course.last().order;
  }
  return GoOn(job, from.course, from.step, std::move(now));
}

// Whether a step depends on the number of steps before it, as Adam's correction
// of averages that began at zero does.
bool CountsSteps(const v1::JobSpec& job) {
  const Optimizer optimizer(OptimizerOptionsOf(job.training().optimizer()));
  const auto of_step = [&optimizer](int64_t step) {
    const OptimizerStep p = optimizer.Prepare(step, /*learning_rate=*/1, 1);
    return std::tuple(p.rate, p.weight2, p.correction2);
  };
  return of_step(2) != of_step(1000);
}

// Whether the first group that names the parameter freezes it, as in
// GroupedOptimizer.
bool IsFrozen(const v1::JobSpec& job, const ParameterSpec& parameter) {
  for (const v1::ParameterGroupSpec& group :
       job.training().parameter_groups()) {
    const ParameterGroup names{
        .parameters = {group.parameters().begin(), group.parameters().end()}};
    if (names.Names(parameter)) return group.frozen();
  }
  return false;
}

// Checks parameters that were frozen and are no longer: their states date from
// before they were frozen. Running averages have no states.
absl::Status CheckFrozen(const v1::JobSpec& job, const GoesOnFrom& from) {
  // With local_sgd the workers' optimizer begins anew, and counts from there.
  if (from.step == 0 || !from.has_state || HasLocalSgd(job) ||
      !CountsSteps(job)) {
    return absl::OkStatus();
  }
  for (const ParameterSpec& parameter : from.parameters) {
    if (parameter.is_running() || !IsFrozen(from.job, parameter) ||
        IsFrozen(job, parameter)) {
      continue;
    }
    const std::string optimizer = OptimizerName(job.training().optimizer());
    const bool slice = !parameter.whole_name.empty();
    return absl::FailedPreconditionError(absl::StrCat(
        "training.parameter_groups: ",
        slice ? parameter.whole_name : parameter.name,
        " was frozen before the checkpoint: the averages that ", optimizer,
        " keeps of its gradients stood still, but ", optimizer,
        " corrects them by the number of all steps of the job, so its next "
        "steps would have a wrong size: keep it frozen, or take the weights "
        "alone, by tributary export and model.initialize_from"));
  }
  return absl::OkStatus();
}

absl::Status CheckEnd(const v1::JobSpec& job, const GoesOnFrom& from) {
  const v1::TrainingSpec& training = job.training();
  std::optional<int64_t> total;  // nullopt: only the data tell
  if (training.has_steps()) total = training.steps();
  if (!job.has_program() && !from.course.empty() && from.step > 0) {
    TRIBUTARY_ASSIGN_OR_RETURN(const DataCourse course,
                               ExpectedCourse(job, from));
    const bool knows_rows = HasSameRows(job.data(), from.job.data()) &&
                            (!course.last().rows_unknown ||
                             course.last().TakesAs(from.course.last()));
    if (training.has_epochs() && knows_rows) {
      total = course.StepsOf(training.epochs());
    }
  }
  if (!total || *total >= from.step) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "training: the job ends after step ", *total, ", the checkpoint is of ",
      "step ", from.step, ": take an earlier checkpoint, or more ",
      training.has_steps() ? "steps" : "epochs"));
}

}  // namespace

absl::Status CheckGoesOn(const v1::JobSpec& job, const GoesOnFrom& from) {
  const v1::JobSpec& before = from.job;
  const int64_t step = from.step;
  const bool has_state = from.has_state;
  TRIBUTARY_RETURN_IF_ERROR(CheckEnd(job, from));
  const int64_t period = StepCountOf(job).steps_an_update;
  if (step % period != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "strategy.parameter_server.sync.local_sgd: goes on after a multiple of "
        "its period of ",
        period, " steps, the checkpoint is of step ", step,
        ": take another checkpoint, or another period"));
  }
  if (has_state && HasLocalSgd(job) != HasLocalSgd(before)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "strategy.parameter_server.sync: the checkpoint holds the state of ",
        HasLocalSgd(before) ? "local_sgd's outer optimizer"
                            : "the job's optimizer",
        ", which ",
        HasLocalSgd(job) ? "local_sgd's outer optimizer"
                         : "a job without local_sgd",
        " cannot go on with: take its weights alone, by tributary export and "
        "model.initialize_from"));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckFrozen(job, from));
  const int64_t delay = SyncTraitsOf(job).delay;
  if (has_state && delay != SyncTraitsOf(before).delay) {
    return absl::FailedPreconditionError(absl::StrCat(
        "strategy.parameter_server.sync.bsp.delay: the checkpoint is of a job "
        "with delay: ",
        SyncTraitsOf(before).delay, ", got ", delay,
        ": keep it, or take the weights alone, by tributary export and "
        "model.initialize_from"));
  }
  if (ServerStatesOf(job) != ServerStatesOf(before)) {
    return absl::FailedPreconditionError(
        "training.optimizer: the checkpoint is of a job whose optimizer keeps "
        "other states: go on with that optimizer, or take the weights alone, "
        "by tributary export and model.initialize_from");
  }
  return absl::OkStatus();
}

}  // namespace tributary
