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
#include "worker/collective/communicator.h"
#include "worker/model/evaluator.h"
#include "worker/model/layer.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"
#include "worker/parallel/micro_batch.h"
#include "worker/parallel/shared_parameters.h"
#include "worker/parallel/transfer_ring.h"

namespace tributary {

// What a stage did at a time, by its clock.
struct PipelineEvent {
  enum class Kind { kForward, kBackward, kWait, kShare };
  Kind kind = Kind::kForward;
  int micro_batch = 0;  // of kWait: the one it waited for; -1: none
  int64_t begin_micros = 0;
  int64_t end_micros = 0;
};

// One stage of a pipeline: a range of a model's layers that computes on the
// micro-batches of a step in the order of a schedule, gets activations from the
// stage before and gradients from the stage after. It receives ahead and sends
// without waiting: one activation more than the schedule holds is on its way
// in, and two gradients. Every wait ends with the group's timeout; every error
// aborts the group and names the rank that the stage waited for. For one
// thread, but for Cancel and waiting_for.
class PipelineStage {
 public:
  struct Options {
    std::unique_ptr<Communicator> group;  // of the stages, in order
    Ops* ops = nullptr;                   // these outlive it; of the device
    Model* model = nullptr;               // this stage's layers, with as many
                                          // sets as ActivationsInFlight says
    Loss* loss = nullptr;                 // of the last stage
    PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
    int micro_batches = 1;                // the most of a Run
    std::vector<SharedParameter> shared;  // with other stages
    std::vector<int> ranks;               // the job's, by stage; for sentences
    const Clock* clock = &Clock::Real();
  };

  // ResourceExhausted: no room for what is received.
  static absl::StatusOr<std::unique_ptr<PipelineStage>> Create(Options options);
  ~PipelineStage();

  // A step, or the part of one with gradient_accumulation.
  struct Step {
    absl::Span<const MicroBatch> micro_batches;
    double scale = 1;         // of the summed loss, as Loss::Differentiate's
    bool accumulate = false;  // onto the gradients of a Run before
    // Told once each parameter's gradient is final, those that are shared
    // summed over their stages; none: more of the step follows.
    std::function<void(int parameter)> gradient_ready;
  };

  // All stages run the same micro-batches. Returns when this stage's part is
  // done and sent: on the last stage the summed loss, elsewhere 0. After an
  // error only the destructor may follow.
  absl::StatusOr<double> Run(const Step& step);

  // Passes batches through the pipeline, forward only: all stages have batches
  // of the same rows. The last stage judges; elsewhere the part is empty.
  absl::StatusOr<v1::EvaluationPart> Evaluate(
      const v1::LossSpec& spec,
      absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch);

  // Ends the wait under way and every later one, from any thread.
  void Cancel(const std::string& why) { options_.group->Abort(why); }
  // The job's rank that the stage waits for, from any thread; -1: for none.
  int waiting_for() const { return waiting_for_; }

  // Of the last Run.
  const std::vector<PipelineEvent>& timeline() const { return timeline_; }
  int most_in_flight() const { return most_in_flight_; }

  const Communicator& group() const { return *options_.group; }

 private:
  explicit PipelineStage(Options options);

  absl::Status Allocate();
  bool IsShared(int parameter) const;
  absl::StatusOr<double> RunTasks(const Step& step);
  absl::Status Forward(const MicroBatch& batch, int i);
  absl::Status Backward(const Step& step, int i, double* loss_sum);
  // Begins to receive what there is room for, once `done` backward passes are.
  void ReceiveAhead(const Step& step, int done);
  absl::Status SendInputGradient(const float* gradient, int64_t rows, int i);
  // Sums the shared gradients over their stages, in the order of stages.
  absl::Status ShareGradients();
  absl::StatusOr<v1::EvaluationPart> EvaluateBatches(
      const v1::LossSpec& spec,
      absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch);
  absl::StatusOr<const float*> Pass(const EvaluationBatch& batch, int64_t i);

  // Waits for a transfer, if one is under way, and frees its place.
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
  int RankOf(int stage) const {
    return options_.ranks.empty() ? stage : options_.ranks[stage];
  }

  const Options options_;

  TransferRing inputs_;            // from the stage before
  TransferRing output_gradients_;  // from the stage after
  TransferRing input_gradients_;   // to the stage before
  std::vector<std::unique_ptr<PendingTransfer>> outputs_;  // sent, by set
  std::vector<const float*> logits_;                       // by set
  DeviceArray<float> shared_;  // gradients of the other stages
  int receiving_inputs_ = 0;   // begun, of this Run
  int receiving_gradients_ = 0;

  std::vector<PipelineEvent> timeline_;
  int in_flight_ = 0;
  int most_in_flight_ = 0;
  std::atomic<int> waiting_for_ = -1;
};

}  // namespace tributary
