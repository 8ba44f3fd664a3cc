// SPDX-License-Identifier: Apache-2.0
#include "server/service/make_training.h"

#include <memory>
#include <utility>

#include "common/base/evaluation_steps.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The steps with a checkpoint, and those after which the ranks wait for a
// decision: the evaluated weights are those that are kept.
Barrier MakeBarrier(const v1::JobSpec& job, DataCourse course) {
  return [checkpoint = job.checkpoint().every_steps(),
          evaluation = job.evaluation().every_steps(),
          course = std::move(course)](int64_t finished) {
    if (checkpoint > 0 && finished % checkpoint == 0) return true;
    return !course.empty() &&
           EvaluationSteps{course, evaluation}.Includes(finished);
  };
}

std::unique_ptr<SyncPolicy> MakePolicy(const v1::JobSpec& job,
                                       DataCourse course) {
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  Barrier barrier = MakeBarrier(job, std::move(course));
  switch (sync.kind_case()) {
    case v1::SyncSpec::kSsp:
      return std::make_unique<StaleSynchronous>(sync.ssp().staleness(),
                                                std::move(barrier));
    case v1::SyncSpec::kAsync:
      return std::make_unique<Asynchronous>(std::move(barrier));
    case v1::SyncSpec::kBsp:
    case v1::SyncSpec::kLocalSgd:
    case v1::SyncSpec::KIND_NOT_SET:
      break;
  }
  return std::make_unique<BulkSynchronous>(sync.bsp().backup_workers());
}

NonFiniteAction NonFiniteActionOf(v1::NonFinite nonfinite) {
  switch (nonfinite) {
    case v1::NON_FINITE_REJECT:
      return NonFiniteAction::kReject;
    case v1::NON_FINITE_SKIP:
      return NonFiniteAction::kSkip;
    default:
      return NonFiniteAction::kFail;
  }
}

}  // namespace

absl::StatusOr<ShardTraining> MakeTraining(const v1::JobSpec& job,
                                           int64_t total_steps,
                                           DataCourse course) {
  const bool local_sgd = SyncTraitsOf(job).updates_locally;
  ShardTraining training;
  training.optimizer = ServerOptimizerOptionsOf(job);
  // The outer optimizer of local_sgd has neither a schedule nor clipping.
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateSchedule::Create(
          local_sgd ? v1::ScheduleSpec()
                    : job.training().learning_rate_schedule(),
          training.optimizer.learning_rate, total_steps));
  training.learning_rate = [schedule = std::move(schedule)](int64_t step) {
    return schedule.At(step);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(training.groups,
                             ParameterGroupsOf(job, total_steps));
  if (local_sgd) {  // the groups are those of the workers' optimizer
    for (ParameterGroup& group : training.groups) {
      group.optimizer = training.optimizer;
      group.learning_rate = training.learning_rate;
    }
  }
  if (!local_sgd) training.clip_norm = job.training().clip_norm();
  training.policy = MakePolicy(job, std::move(course));
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  training.scale_by_staleness =
      sync.ssp().scale_by_staleness() || sync.async().scale_by_staleness();
  // A process that replaces a worker may have to repeat its rank's last step,
  // with the weights of that step.
  const int64_t delay = SyncTraitsOf(job).delay;
  if (training.policy->gathers() && !training.policy->drops_late()) {
    const bool replaces =
        job.cluster().on_worker_loss() != v1::WORKER_LOSS_FAIL;
    training.kept_versions = static_cast<int>(delay) + (replaces ? 1 : 0);
  }
  training.saves_previous = delay > 0;
  training.nonfinite = NonFiniteActionOf(job.training().nonfinite());
  training.replaced_mean = ReplacedMeanOf(job);
  training.steps_an_update = StepCountOf(job).steps_an_update;
  training.checkpoint_every_steps = job.checkpoint().every_steps();
  training.total_steps = total_steps;
  return training;
}

}  // namespace tributary
