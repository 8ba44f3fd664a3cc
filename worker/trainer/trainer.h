#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/job/learning_rate_schedule.h"
#include "kernels/ops.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "worker/data/batch_loader.h"
#include "worker/data/dataset.h"
#include "worker/data/step_plan.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/parallel/pipeline_stage.h"
#include "worker/trainer/step_times.h"

namespace tributary {

// One rank's training loop: batches in, gradients out, reports on the way.
// Knows no coordinator and no server: what they want to hear and decide comes
// through the hooks.
class Trainer {
 public:
  struct Options {
    const v1::JobSpec* job = nullptr;  // resolved; all pointers outlive it
    int rank = 0;                      // among the replicas
    int num_workers = 1;               // replicas
    Ops* ops = nullptr;
    Model* model = nullptr;
    Loss* loss = nullptr;                 // null where another stage has it
    PipelineStage* stage = nullptr;       // which has model and loss, or none
    TensorGroup* tensor_group = nullptr;  // of the model, or none
    int micro_batches = 1;                // of a stage
    // Whether this rank's losses and samples count: of those that train one
    // replica together one does.
    bool reports = true;
    const Dataset* train = nullptr;
    const Dataset* test = nullptr;  // or none
    StepPlan plan;
    BatchCut cut;
    LearningRateSchedule schedule;
    GradientSynchronizer* synchronizer = nullptr;
    // Of all that this rank exchanges; asked between steps.
    std::function<GradientSynchronizer::Traffic()> traffic;
    const Clock* clock = &Clock::Real();
    // For tests of stragglers: computing takes so many times as long.
    double slow_down = 1;

    // Asked before every step, from 1. Cancelled: stop here, in good order.
    std::function<absl::Status(int64_t step)> begin_step;
    // prefetched: batches that wait for the next steps.
    std::function<void(const v1::StepReport&, int64_t prefetched)> report_step;
    // This rank's part of the test set, judged after `step` steps.
    std::function<absl::Status(int64_t step, int64_t epoch,
                               const v1::EvaluationPart&)>
        report_evaluation;
  };

  explicit Trainer(Options options) : options_(std::move(options)) {}

  // Trains from `start_step` (steps finished before) to the end of the plan, or
  // to the step where begin_step says Cancelled; evaluates at the end of every
  // epoch and of the run, and at once when it starts at the end of an epoch.
  absl::Status Run(int64_t start_step);

 private:
  // Returns the steps finished after it.
  absl::StatusOr<int64_t> Step(int64_t step, BatchLoader& loader);
  absl::StatusOr<const Batch*> NextBatch(int64_t step, BatchLoader& loader);
  void Report(int64_t step, int64_t finished, v1::StepReport report,
              int64_t prefetched);
  // Forward and backward of one batch; adds the summed loss.
  absl::Status Compute(const Batch& batch, const StepRange& range, int64_t step,
                       int64_t rank_samples, double* loss_sum,
                       StepTimes* times);
  absl::Status Evaluate(int64_t step);

  Options options_;
  double last_compute_seconds_ = 0;
};

}  // namespace tributary
