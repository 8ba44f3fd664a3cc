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

// One rank's training loop: takes batches, computes gradients, reports steps.
// Independent of coordinator and servers, which it reaches only through hooks.
class Trainer {
 public:
  struct Options {
    const v1::JobSpec* job = nullptr;  // resolved; all outlive the trainer
    int rank = 0;                      // index of the replica
    int num_workers = 1;               // number of replicas
    Ops* ops = nullptr;
    Model* model = nullptr;
    Loss* loss = nullptr;                 // null when another stage has it
    PipelineStage* stage = nullptr;       // uses `model` and `loss`; or null
    TensorGroup* tensor_group = nullptr;  // the model's, or null
    int micro_batches = 1;                // per batch, for a stage
    // Whether this rank reports losses and samples: one rank of each replica
    // does.
    bool reports = true;
    const Dataset* train = nullptr;
    const Dataset* test = nullptr;  // or null
    StepPlan plan;
    BatchCut cut;
    LearningRateSchedule schedule;
    GradientSynchronizer* synchronizer = nullptr;
    // All traffic of this rank. Called between steps.
    std::function<GradientSynchronizer::Traffic()> traffic;
    const Clock* clock = &Clock::Real();
    // For tests of stragglers: stretches computation by this factor.
    double slow_down = 1;

    // Called before every step, counted from 1. Cancelled: stop without an
    // error.
    std::function<absl::Status(int64_t step)> begin_step;
    // prefetched: batches that are ready for the next steps.
    std::function<void(const v1::StepReport&, int64_t prefetched)> report_step;
    // Reports the evaluation of this rank's part of the test set after `step`
    // steps.
    std::function<absl::Status(int64_t step, int64_t epoch,
                               const v1::EvaluationPart&)>
        report_evaluation;
  };

  explicit Trainer(Options options) : options_(std::move(options)) {}

  // Trains from `start_step` (steps finished before) to the end of the plan, or
  // to the step where begin_step returns Cancelled. Evaluates at the end of
  // every epoch and of the run, and at once when it starts at the end of an
  // epoch.
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
  absl::Status Evaluate(int64_t step);

  Options options_;
  double last_compute_seconds_ = 0;
};

}  // namespace tributary
