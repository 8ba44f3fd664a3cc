// SPDX-License-Identifier: Apache-2.0
#include "common/job/goes_on.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/optimizer/optimizer.h"

namespace tributary {
namespace {

bool HasLocalSgd(const v1::JobSpec& job) {
  return job.strategy().parameter_server().sync().has_local_sgd();
}

std::vector<std::string> StatesOf(const v1::JobSpec& job) {
  return Optimizer(ServerOptimizerOptionsOf(job)).state_names();
}

// The job's total steps; 0: only the data tells.
int64_t TotalSteps(const v1::JobSpec& job, const GoesOnFrom& from) {
  const v1::TrainingSpec& training = job.training();
  if (training.has_steps()) return training.steps();
  const bool same_batches =
      job.cluster().workers() == from.job.cluster().workers() &&
      training.gradient_accumulation() ==
          from.job.training().gradient_accumulation() &&
      job.strategy().SerializeAsString() ==
          from.job.strategy().SerializeAsString() &&
      job.data().SerializeAsString() == from.job.data().SerializeAsString();
  return same_batches ? training.epochs() * from.steps_per_epoch : 0;
}

}  // namespace

absl::Status CheckGoesOn(const v1::JobSpec& job, const GoesOnFrom& from) {
  const v1::JobSpec& before = from.job;
  const int64_t step = from.step;
  const bool has_state = from.has_state;
  const int64_t total = TotalSteps(job, from);
  if (total > 0 && total < step) {
    return absl::FailedPreconditionError(
        absl::StrCat("training: the job ends after step ", total,
                     ", the checkpoint is of "
                     "step ",
                     step, ": take an earlier checkpoint, or more steps"));
  }
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
  if (StatesOf(job) != StatesOf(before)) {
    return absl::FailedPreconditionError(
        "training.optimizer: the checkpoint is of a job whose optimizer keeps "
        "other states: go on with that optimizer, or take the weights alone, "
        "by tributary export and model.initialize_from");
  }
  return absl::OkStatus();
}

}  // namespace tributary
