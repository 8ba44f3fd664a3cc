// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/plan/gradient_ranges.h"
#include "worker/rank/parallel/all_reduce_checkpoints.h"
#include "worker/rank/parallel/all_reduce_options.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/parallel/local_optimizer.h"
#include "worker/rank/parallel/rank_sums.h"
#include "worker/rank/parallel/replaced_means.h"

namespace tributary {

// Averages gradients by all-reduce among the ranks, bucket by bucket during the
// backward pass, and runs the optimizer on the workers: on the whole model on
// every rank (Li et al. 2020); or on each rank for its share of every bucket,
// whose new weights it then sends to the others (ZeRO stage 1, Rajbhandari et
// al. 2020); or on rank 0 alone.
//
// Gradients are added in rank order with the same sample weights as on servers,
// and the optimizer does the same arithmetic. So with host communicators the
// weights equal those of a parameter server, bit for bit.
//
// On a device the thread uses an Ops other than the model's, so that it reduces
// and updates buckets during the backward pass there as well. It does not in
// the first step: CUDA loads a kernel at its first launch and may then wait for
// everything that runs on the device (CUDA C++ Programming Guide, Lazy
// Loading). Two ranks that load kernels while collectives of two groups need
// both of them would wait forever. After a fault of the device this rank sends
// nothing more and updates nothing.
class AllReduceSynchronizer final : public GradientSynchronizer {
 public:
  using Options = AllReduceOptions;

  // ResourceExhausted: no memory for the optimizer's state.
  static absl::StatusOr<std::unique_ptr<AllReduceSynchronizer>> Create(
      Options options);
  ~AllReduceSynchronizer() override;

  // All ranks get rank 0's weights, or read those of the checkpoint.
  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnProgress& on_progress) override;
  // With 0 samples, clears the gradients, which then stay zeros: a NaN in them
  // would spoil the mean even with weight 0.
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<int64_t> FinishStep() override;
  absl::Status Checkpoint(int64_t step, bool best) override;
  absl::Status End(int64_t step) override;
  void Cancel(const std::string& why) override {
    options_.group->Abort(why);
    if (options_.part.group) options_.part.group->Abort(why);
  }
  // With learning rates of a program, FinishStep ends with InvalidArgument when
  // the rates of two ranks differ.
  void SetLearningRates(const std::vector<double>& rates) override {
    learning_rates_ = rates;
  }
  bool skipped() const override { return skipped_; }
  Traffic traffic() const override {
    return {options_.group->bytes_sent(), options_.group->bytes_received(), 0};
  }
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
  void Run();  // runs on thread_
  // Sets sample_weights_ from the samples that all ranks exchange.
  absl::Status WeighSamples();
  // Reduces one bucket, and updates it unless the step needs sums first.
  absl::Status Process(const Bucket& bucket);
  LearningRates Rates() const;  // of the step
  absl::Status NotFinite(size_t range) const;
  absl::Status GatherWeights(const Bucket& bucket);
  // Second phase of a step that needs sums over whole tensors.
  absl::Status ApplyWithSums();
  // Records a span from `begin_micros` until now.
  void AddSpan(bool optimizer, int64_t begin_micros);
  // Adds up the sums of all parts of the replica, in the plan's order.
  absl::StatusOr<std::vector<double>> TotalSums(const std::vector<double>& own);
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
  std::optional<ReplacedMeans> means_;
  std::unique_ptr<LocalOptimizer> optimizer_;
  std::unique_ptr<AllReduceCheckpoints> checkpoints_;
  bool two_phase_ = false;
  int64_t step_ = 0;
  uint64_t samples_ = 0;  // this and the next: of the step, on this rank
  std::vector<double> learning_rates_;
  std::vector<float> sample_weights_;
  bool skipped_ = false;
  std::vector<int> missing_;  // [bucket], gradients that are not ready
  // The bucket that is processed next. All ranks process the buckets in order,
  // even if a program finishes its gradients in another order.
  size_t next_ = 0;
  std::vector<Span> spans_;  // written by the thread while left_ > 0

  absl::Mutex mu_;
  std::deque<int> ready_ ABSL_GUARDED_BY(mu_);
  int left_ ABSL_GUARDED_BY(mu_) = 0;  // buckets of the step not processed yet
  absl::Status status_ ABSL_GUARDED_BY(mu_);  // the first error
  bool held_ ABSL_GUARDED_BY(mu_);            // until the end of the first step
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
