// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/job/learning_rate_schedule.h"
#include "common/member/result_sender.h"
#include "kernels/ops.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/train/data/batches/batch_loader.h"
#include "worker/train/data/batches/step_plan.h"
#include "worker/train/data/open_data.h"
#include "worker/train/trainer/replica.h"
#include "worker/train/trainer/step_times.h"

namespace tributary {

// The job as a Trainer sees it: it asks whether to go on, and receives reports.
class TrainingJob {
 public:
  virtual ~TrainingJob() = default;
  // Called before every step, counted from 1. Does what PassGate does.
  // Cancelled: stop without an error.
  virtual absl::Status BeginStep(int64_t step) = 0;
  // prefetched: batches that are ready for the next steps.
  virtual void ReportStep(const v1::StepReport& report, int64_t prefetched) = 0;
  // Reports the evaluation of this rank's part of a set after `step` steps.
  // `set`: see ResultSender.
  virtual absl::Status ReportEvaluation(int64_t step, int64_t epoch,
                                        const v1::EvaluationPart& part,
                                        ResultSender::Set set) = 0;
  // Waits for the job's decision after this evaluation
  // (AwaitEvaluationResponse).
  virtual absl::StatusOr<v1::AwaitEvaluationResponse> AwaitEvaluation(
      int64_t step) = 0;
  // All traffic of this rank. Called between steps.
  virtual GradientSynchronizer::Traffic traffic() const = 0;
};

// One rank's training loop: takes batches, computes gradients, reports steps.
// Independent of coordinator and servers, which it reaches only through the
// synchronizer and the job.
class Trainer {
 public:
  struct Options {                      // all outlive the trainer
    const v1::JobSpec* spec = nullptr;  // resolved
    TrainingJob* job = nullptr;
    Ops* ops = nullptr;
    const Replica* replica = nullptr;
    const TrainTest* data = nullptr;
    StepPlan plan;
    LearningRateSchedule schedule;
    GradientSynchronizer* synchronizer = nullptr;
    const Clock* clock = &Clock::Real();
    TraceRecorder* trace = nullptr;  // of traced steps; or null
    // For tests of stragglers: stretches computation by this factor.
    double slow_down = 1;
  };

  explicit Trainer(Options options)
      : options_(std::move(options)), replica_(*options_.replica) {}

  // Trains from `start_step` (steps finished before) to the end of the plan, or
  // to the step where BeginStep returns Cancelled or the job stops early.
  // Evaluates after the job's EvaluationSteps and at the end of the run, and at
  // once when it starts at one of these steps. A job with a validation set uses
  // that set, and at the end also the test set.
  absl::Status Run(int64_t start_step);

 private:
  // Returns the number of finished steps after it.
  absl::StatusOr<int64_t> Step(int64_t step, BatchLoader& loader);
  absl::StatusOr<const Batch*> NextBatch(int64_t step, BatchLoader& loader);
  void Report(int64_t step, int64_t finished, v1::StepReport report,
              int64_t prefetched);
  // Runs forward and backward of one batch and adds its summed loss to
  // loss_sum.
  absl::Status Compute(const Batch& batch, const StepRange& range, int64_t step,
                       int64_t rank_samples, double* loss_sum,
                       StepTimes* times);
  // Evaluates on the job's validation or else test set, if it has one.
  absl::Status Evaluate(int64_t step);
  absl::Status EvaluateOn(const Dataset& data, int64_t step,
                          ResultSender::Set set);
  // Runs the last evaluations, of the weights after `step`.
  absl::Status EvaluateAtEnd(int64_t step);
  // Evaluates after `step` and carries out the job's decision.
  absl::Status EvaluateAndDecide(int64_t step);

  // The number of this rank's replica, which selects its samples.
  int rank() const { return replica_.place().data; }

  Options options_;
  const Replica& replica_;
  double last_compute_seconds_ = 0;
  int64_t end_ = 0;         // the last step, as far as it is known
  int64_t evaluated_ = -1;  // the step of the last evaluation
};

}  // namespace tributary
