#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/device_mesh.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpointer.h"
#include "common/optimizer/optimizer_options.h"
#include "common/plan/gradient_ranges.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "worker/collective/communicator.h"
#include "worker/model/model.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/parallel/local_optimizer.h"
#include "worker/parallel/rank_sums.h"

namespace tributary {

// Averages gradients by all-reduce among the ranks, bucket by bucket during the
// backward pass, and runs the optimizer on the workers: on the whole model on
// every rank (Li et al. 2020); or on each rank for its share of every bucket,
// whose new weights it then sends to the others (ZeRO stage 1, Rajbhandari et
// al. 2020); or on rank 0 alone.
//
// Gradients are added in rank order with the servers' sample weights, and the
// optimizer computes what the servers' does. So with host communicators the
// weights equal those of a parameter server, bit for bit.
//
// On a device the thread uses an Ops other than the model's, so that buckets
// are reduced and updated during the backward pass there as well. After a fault
// of the device this rank sends nothing more and updates nothing.
class AllReduceSynchronizer final : public GradientSynchronizer {
 public:
  struct Device {                 // on which gradients are exchanged
    std::unique_ptr<Ops> beside;  // owns `ops` if it is not the model's
    // Used by the thread that exchanges gradients. On the host it may be the
    // model's.
    Ops* ops = nullptr;
    Ops* model_ops = nullptr;  // computes the gradients; null: `ops`
    // Creates a bucket's event, with which `ops` waits for `model_ops` on the
    // device. None on the host, where nothing needs to wait.
    std::function<std::unique_ptr<DeviceEvent>()> new_event;
  };
  // Which part of a replica the model is.
  struct Part {
    ParameterSpecs planned;  // of all parts; empty: the model is whole
    DeviceMesh mesh;
    DeviceMesh::Place place;         // of this rank
    std::vector<int> place_in_plan;  // of each of the model's parameters
    // All ranks of one replica, in rank order, for arrays in host memory. None
    // when the model is whole or no step needs sums over the whole model.
    std::unique_ptr<Communicator> group;
  };
  // The ranks that run the optimizer and hold its state.
  enum class UpdateOn {
    kEveryRank,  // every rank, on the whole model
    kOwnCut,     // every rank, on its share of every bucket
    kRankZero,   // rank 0 only
  };
  struct Update {
    UpdateOn on = UpdateOn::kEveryRank;
    OptimizerOptions optimizer;
    double clip_norm = 0;
    bool skip_nonfinite = false;  // else a step with a NaN fails
    std::function<double(int64_t step)> learning_rate;
  };
  // Every `every_steps` steps (0: never) the ranks compare their weights and
  // write a checkpoint: with kOwnCut each rank its share, else replica 0 all.
  struct Checkpoints {
    int64_t every_steps = 0;
    std::string directory;
    uint64_t job_id = 0, lineage = 0, plan_epoch = 0;
    // Called on the checkpointer's thread.
    std::function<void(const Checkpointer::Written&,
                       const std::vector<std::string>& state_names)>
        on_written;
    // The checkpoint from which training continues after `start_step` steps,
    // with the model's parameters and the optimizer's state; or null.
    std::shared_ptr<const CheckpointReader> restore;
    int64_t start_step = 0;
  };
  struct Options {
    Device device;
    // All data-parallel ranks of this part, for arrays on the device of `ops`.
    std::unique_ptr<Communicator> group;
    Model* model = nullptr;  // must outlive the synchronizer
    Part part;
    int64_t bucket_bytes = 25 << 20, first_bucket_bytes = 1 << 20;
    Update update;
    // The number of samples of every rank in a step, counted from 0.
    std::function<std::vector<uint64_t>(int64_t step)> samples;
    Checkpoints checkpoints;
    // Called with the rank that a step waits for, and then with "".
    std::function<void(const std::string& whom)> on_waiting;
  };

  // ResourceExhausted: no memory for the optimizer's state.
  static absl::StatusOr<std::unique_ptr<AllReduceSynchronizer>> Create(
      Options options);
  ~AllReduceSynchronizer() override;

  // All ranks get rank 0's weights, or read those of the checkpoint.
  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnPosition& on_position) override;
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<int64_t> FinishStep() override;
  void Cancel(const std::string& why) override {
    options_.group->Abort(why);
    if (options_.part.group) options_.part.group->Abort(why);
  }
  Traffic traffic() const override;
  std::vector<Span> spans() const override { return spans_; }

 private:
  // One bucket and its split among the ranks.
  struct Bucket {
    GradientBucket bucket;
    std::vector<int64_t> bounds;  // by rank, relative to bucket.begin
    size_t first_range = 0;       // this rank's first range in optimizer_
    size_t num_ranges = 0;
    std::unique_ptr<DeviceEvent> computed;  // gradients are computed
  };

  explicit AllReduceSynchronizer(Options options);

  absl::Status PlanBuckets();
  void Run();  // the thread
  // Reduces one bucket, and updates it unless the step needs sums first.
  absl::Status Process(const Bucket& bucket);
  absl::Status NotFinite(size_t range) const;
  absl::Status GatherWeights(const Bucket& bucket);
  bool replicated() const { return options_.update.on == UpdateOn::kEveryRank; }
  bool cut() const { return options_.update.on == UpdateOn::kOwnCut; }
  // Second phase of a step that needs sums over whole tensors.
  absl::Status ApplyWithSums();
  // Records a span from `begin_micros` until now.
  void AddSpan(bool optimizer, int64_t begin_micros);
  void StartCheckpointer();
  // True when this rank writes the parameter for its replica.
  bool Writes(int parameter) const;
  // Adds up the sums of all parts of the replica, in the plan's order.
  absl::StatusOr<std::vector<double>> TotalSums(const std::vector<double>& own);
  absl::Status Restore();
  absl::Status ReadCheckpoint();
  // The job's rank that holds this rank's part in another replica.
  int JobRank(int replica) const;
  // DataLoss names the rank whose weights or state differ from those of the
  // same part in the first replica.
  absl::Status CompareReplicas(int64_t steps);
  absl::Status Checkpoint(int64_t steps);
  // Waits for the thread and reports which rank it waits for.
  absl::Status WaitForBuckets();

  float* gradients() const { return options_.model->gradient(0); }
  float* weights() const { return options_.model->weight(0); }

  Options options_;
  Offsets offsets_;
  int64_t num_elements_ = 0;  // of the model's arrays, with padding
  std::vector<Bucket> buckets_;
  std::vector<int> bucket_of_;  // [parameter]
  std::optional<RankSums> sums_;
  std::unique_ptr<LocalOptimizer> optimizer_;
  std::unique_ptr<Checkpointer> checkpointer_;  // if this rank writes
  bool two_phase_ = false;
  int64_t step_ = 0;
  std::vector<float> sample_weights_;
  std::vector<int> missing_;  // [bucket], gradients that are not ready
  std::vector<Span> spans_;   // written by the thread while left_ > 0

  absl::Mutex mu_;
  std::deque<int> ready_ ABSL_GUARDED_BY(mu_);
  int left_ ABSL_GUARDED_BY(mu_) = 0;  // buckets of the step not processed yet
  absl::Status status_ ABSL_GUARDED_BY(mu_);  // the first error
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
