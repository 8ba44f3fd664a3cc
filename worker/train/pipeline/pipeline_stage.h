// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/plan/pipeline_schedule.h"
#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"
#include "worker/train/model/evaluator.h"
#include "worker/train/model/layer.h"
#include "worker/train/model/loss.h"
#include "worker/train/model/model.h"
#include "worker/train/pipeline/micro_batch.h"
#include "worker/train/pipeline/shared_parameters.h"
#include "worker/train/pipeline/transfer_ring.h"

namespace tributary {

// One activity of a stage, timed by its clock.
struct PipelineEvent {
  enum class Kind { kForward, kBackward, kWait, kShare };
  Kind kind = Kind::kForward;
  int micro_batch = 0;  // kWait: the awaited one; -1: none
  int64_t begin_micros = 0;
  int64_t end_micros = 0;
};

// One stage of a pipeline: a range of a model's layers. It computes on a step's
// micro-batches in the order of a schedule, receives activations from the
// previous stage and gradients from the next one. It sends without waiting and
// receives ahead: up to one activation more than the schedule holds, and up to
// two gradients, may be in flight to it. The group's timeout limits every wait.
// Every error aborts the group and names the awaited rank. For one thread,
// except Cancel and waiting_for.
class PipelineStage {
 public:
  struct Options {
    std::unique_ptr<Communicator> group;  // the stages, in order
    Ops* ops = nullptr;                   // all must outlive the stage
    Model* model = nullptr;  // this stage's layers, with ActivationsInFlight
                             // activation sets
    Loss* loss = nullptr;    // only on the last stage
    PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
    int micro_batches = 1;                // the most per Run
    std::vector<SharedParameter> shared;  // shared with other stages
    std::vector<int> ranks;               // the job's, by stage, for messages
    const Clock* clock = &Clock::Real();
  };

  // ResourceExhausted: no memory for received arrays.
  static absl::StatusOr<std::unique_ptr<PipelineStage>> Create(Options options);
  ~PipelineStage();

  // A step, or a part of a step with gradient_accumulation.
  struct Step {
    absl::Span<const MicroBatch> micro_batches;
    double scale = 1;         // of the summed loss, as in Loss::Differentiate
    bool accumulate = false;  // add to the gradients of the previous Run
    // Called once for each parameter when its gradient is final; the gradient
    // of a shared parameter is then summed over its stages. Empty unless this
    // Run is the step's last.
    std::function<void(int parameter)> gradient_ready;
  };

  // All stages must run the same micro-batches. Returns when this stage's work
  // is done and sent, with the summed loss on the last stage and 0 elsewhere.
  // After an error only the destructor may be called.
  absl::StatusOr<double> Run(const Step& step);

  // Runs batches through the pipeline, forward only. All stages must have
  // batches with the same rows. The last stage returns the evaluation; the part
  // is empty elsewhere.
  absl::StatusOr<v1::EvaluationPart> Evaluate(
      const v1::LossSpec& spec,
      absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch);

  // Ends the current wait and all later ones. May be called from any thread.
  void Cancel(const std::string& why) { options_.group->Abort(why); }
  // The job's rank that the stage waits for; -1 while it does not wait. May be
  // called from any thread.
  int waiting_for() const { return waiting_for_; }

  // The events of the last Run.
  const std::vector<PipelineEvent>& timeline() const { return timeline_; }

  const Communicator& group() const { return *options_.group; }

 private:
  explicit PipelineStage(Options options);

  absl::Status Allocate();
  bool IsShared(int parameter) const;
  absl::StatusOr<double> RunTasks(const Step& step);
  absl::Status Forward(const MicroBatch& batch, int i);
  absl::Status Backward(const Step& step, int i, double* loss_sum);
  // Starts all receives for which there is room after `done` backward passes.
  void ReceiveAhead(const Step& step, int done);
  absl::Status SendInputGradient(const float* gradient, int64_t rows, int i);
  // Sums the shared gradients over their stages, in the order of stages.
  absl::Status ShareGradients();
  absl::StatusOr<v1::EvaluationPart> EvaluateBatches(
      const v1::LossSpec& spec,
      absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch);
  absl::StatusOr<const float*> Pass(const EvaluationBatch& batch, int64_t i);

  // Waits for a transfer, if one is in flight, and frees its slot.
  absl::Status Finish(std::unique_ptr<PendingTransfer>* transfer, int peer,
                      const char* wanted, int64_t micro_batch);
  void Record(PipelineEvent::Kind kind, int64_t micro_batch, int64_t begin);
  void Copy(int64_t n, const float* from, float* to);
  absl::Status AbortWith(const absl::Status& status);

  int stage() const { return options_.group->rank(); }
  int stages() const { return options_.group->size(); }
  bool first() const { return stage() == 0; }
  bool last() const { return stage() == stages() - 1; }
  int SetOf(int64_t i) const {
    return static_cast<int>(i % options_.model->activation_sets());
  }

  const Options options_;

  TransferRing inputs_;            // from the stage before
  TransferRing output_gradients_;  // from the stage after
  TransferRing input_gradients_;   // to the stage before
  std::vector<std::unique_ptr<PendingTransfer>> outputs_;  // sends, by set
  std::vector<const float*> logits_;                       // by set
  DeviceArray<float> shared_;  // gradients of the other stages
  int receiving_inputs_ = 0;   // started in this Run
  int receiving_gradients_ = 0;

  std::vector<PipelineEvent> timeline_;
  std::atomic<int> waiting_for_ = -1;
};

}  // namespace tributary
