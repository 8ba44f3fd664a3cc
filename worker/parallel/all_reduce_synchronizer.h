#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/device_mesh.h"
#include "common/base/optimizer_options.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpointer.h"
#include "common/plan/gradient_ranges.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "worker/collective/communicator.h"
#include "worker/model/device_array.h"
#include "worker/model/model.h"
#include "worker/parallel/gradient_synchronizer.h"
#include "worker/parallel/local_optimizer.h"

namespace tributary {

// Averages the ranks' gradients among themselves, bucket by bucket while
// backward goes on below, and runs the optimizer here: on the whole model (Li
// et al. 2020); or each rank on its cut of every bucket, whose new weights the
// others then get (ZeRO stage 1, Rajbhandari et al. 2020); or rank 0 alone.
//
// Gradients are added in rank order with the servers' weights and the
// optimizer's arithmetic is theirs, so over host communicators the weights are
// those of a parameter server, bit for bit.
//
// On a device the thread has Ops of its own beside the model's, so that buckets
// are reduced and updated while backward goes on there as well. After a fault
// of the device this rank gives nothing more to the others and updates nothing.
class AllReduceSynchronizer final : public GradientSynchronizer {
 public:
  // After every so many steps, where above 0, the ranks compare their weights
  // and write a checkpoint: each its cut, or rank 0 all of it.
  struct Checkpoints {
    int64_t every_steps = 0;
    std::string directory;
    uint64_t job_id = 0;
    uint64_t lineage = 0;
    uint64_t plan_epoch = 0;
    // On a thread of its own.
    std::function<void(const Checkpointer::Written&,
                       const std::vector<std::string>& state_names)>
        on_written;
  };
  // Where the optimizer runs, and its state is.
  enum class UpdateOn {
    kEveryRank,  // on the whole model
    kOwnCut,     // each rank on its cut of every bucket
    kRankZero,   // there alone
  };
  struct Options {
    std::unique_ptr<Ops> beside;  // `ops`, where that is not the model's
    // Of all data-parallel ranks, for arrays of the device of `ops`.
    std::unique_ptr<Communicator> group;
    // Of all that train one replica, by rank, for arrays of the host; none
    // where the model is whole or no step needs sums over all of it.
    std::unique_ptr<Communicator> model_group;
    Model* model = nullptr;  // outlives it
    // Of the model's device: what the thread that exchanges gradients computes
    // with. On the host it may be the model's own.
    Ops* ops = nullptr;
    Ops* model_ops = nullptr;  // what computes the gradients; none: `ops`
    // Of the device, one for each bucket: how `ops` waits for `model_ops`.
    // None: on the host, which has nothing to wait for.
    std::function<std::unique_ptr<DeviceEvent>()> new_event;
    // Where the model is a part of one: the parameters of all parts, this
    // rank's place among them, and where the model's stand in the list. Empty:
    // the model is whole.
    ParameterSpecs planned;
    DeviceMesh mesh;
    DeviceMesh::Place place;
    std::vector<int> place_in_plan;
    UpdateOn update_on = UpdateOn::kEveryRank;
    int64_t bucket_bytes = 25 << 20;
    int64_t first_bucket_bytes = 1 << 20;
    OptimizerOptions optimizer;
    double clip_norm = 0;
    bool skip_nonfinite = false;  // else a step with a NaN fails
    std::function<double(int64_t step)> learning_rate;
    // Of every rank, behind its mean gradient of a step from 0.
    std::function<std::vector<uint64_t>(int64_t step)> samples;
    // Training goes on after `start_step` steps with this checkpoint, which
    // holds the model's parameters and the optimizer's state; or none.
    std::shared_ptr<const CheckpointReader> restore;
    int64_t start_step = 0;
    Checkpoints checkpoints;
    // Told now and then for whom a step waits, and an empty string after.
    std::function<void(const std::string& whom)> on_waiting;
  };

  // ResourceExhausted: no room for the optimizer's state.
  static absl::StatusOr<std::unique_ptr<AllReduceSynchronizer>> Create(
      Options options);
  ~AllReduceSynchronizer() override;

  // Rank 0's weights go to everybody, or everybody reads the checkpoint's.
  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnPosition& on_position) override;
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<int64_t> FinishStep() override;
  void Cancel(const std::string& why) override {
    options_.group->Abort(why);
    if (options_.model_group) options_.model_group->Abort(why);
  }
  Traffic traffic() const override;
  std::vector<Span> spans() const override { return spans_; }

 private:
  // What this and the other ranks do with one bucket.
  struct Bucket {
    GradientBucket bucket;
    std::vector<int64_t> bounds;  // by rank, from bucket.begin
    size_t first_range = 0;       // of this rank's, in the optimizer
    size_t num_ranges = 0;
    std::unique_ptr<DeviceEvent> computed;  // its gradients, on the device
  };

  explicit AllReduceSynchronizer(Options options);

  absl::Status PlanBuckets();
  // AllGather of values in host memory.
  absl::Status AllGatherOnHost(float* values,
                               const std::vector<int64_t>& bounds);
  void Run();  // the thread
  // Reduces one bucket, and updates it where no sums are needed first.
  absl::Status Process(const Bucket& bucket);
  absl::Status NotFinite(size_t range) const;
  absl::Status GatherWeights(const Bucket& bucket);
  bool replicated() const { return options_.update_on == UpdateOn::kEveryRank; }
  bool cut() const { return options_.update_on == UpdateOn::kOwnCut; }
  // The second phase of a step that needs sums over whole tensors.
  absl::Status ApplyWithSums();
  // Each value's sums over every parameter's grains, of all ranks; `own` has
  // `stride` values a grain of this rank's ranges.
  absl::StatusOr<std::vector<std::vector<double>>> SumsOverRanks(
      const std::vector<double>& own, int stride);
  // What has gone on from `begin_micros` until now.
  void AddSpan(bool optimizer, int64_t begin_micros);
  void StartCheckpointer();
  // Whether this is the part of a replica that writes the parameter.
  bool Writes(int parameter) const;
  // The same sums over all parts of the replica, in the plan's order.
  absl::StatusOr<std::vector<double>> TotalSums(const std::vector<double>& own);
  absl::Status Restore();
  absl::Status ReadCheckpoint();
  // Which rank of the job has this one's part of another replica.
  int JobRank(int replica) const;
  // DataLoss names the rank whose weights, or state, differ from those of its
  // like in the first replica.
  absl::Status CompareReplicas(int64_t steps);
  absl::Status Checkpoint(int64_t steps);
  // Waits for the thread; says for whom it waits.
  absl::Status WaitForBuckets();

  float* gradients() const { return options_.model->gradient(0); }
  float* weights() const { return options_.model->weight(0); }

  Options options_;
  Offsets offsets_;
  int64_t num_elements_ = 0;  // of the model's arrays, with what aligns them
  std::vector<Bucket> buckets_;
  std::vector<int> bucket_of_;                          // [parameter]
  std::vector<std::vector<GradientRange>> all_ranges_;  // [rank], in order
  std::unique_ptr<LocalOptimizer> optimizer_;
  std::unique_ptr<Checkpointer> checkpointer_;  // where this rank writes
  DeviceArray<float> passage_;  // of host values, where a device exchanges
  int64_t passage_size_ = 0;
  bool two_phase_ = false;
  int64_t step_ = 0;
  std::vector<float> sample_weights_;
  std::vector<int> missing_;  // [bucket], parameters that are not ready
  std::vector<Span> spans_;   // the thread's, while buckets are left

  absl::Mutex mu_;
  std::deque<int> ready_ ABSL_GUARDED_BY(mu_);
  int left_ ABSL_GUARDED_BY(mu_) = 0;  // buckets of the step not processed yet
  absl::Status status_ ABSL_GUARDED_BY(mu_);  // the first error
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
