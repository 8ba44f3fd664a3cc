// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/train/data/batches/batch.h"
#include "worker/train/data/batches/sampler.h"
#include "worker/train/data/batches/step_plan.h"

namespace tributary {

// Fills rows, features, labels and targets of `out`.
using BatchSource =
    std::function<absl::Status(int64_t epoch, int64_t batch, Batch* out)>;

// Returns a source of the rows that `sampler` chooses; `gather` copies them.
BatchSource SampledBatches(
    ShardedSampler sampler,
    std::function<void(absl::Span<const int64_t> rows, Batch* out)> gather);

// Prepares one rank's batches ahead of the computation, on a thread of its own
// and in a fixed ring of buffers. Next is for one thread at a time.
class BatchLoader {
 public:
  struct Options {
    // Fills a batch with the rank's rows of a global batch of an epoch, both
    // from 0, in the order of the plan. Only the loader's thread calls it.
    BatchSource fill;
    int rank = 0;
    StepPlan plan;
    int64_t first_step = 0;  // the first step of a run or of its continuation
    int depth = 3;           // batches in memory, including the caller's
  };

  // InvalidArgument when first_step exceeds the plan's steps or depth is below
  // 2.
  static absl::StatusOr<std::unique_ptr<BatchLoader>> Start(Options options);

  // Stops at once and drops batches that were not taken.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Returns the next micro-batch, from the first one of first_step to the last
  // one of the plan. It is valid until the next call. DeadlineExceeded when it
  // is not ready in time (try again); OutOfRange after the last one; the
  // source's error once the batches before it are taken.
  absl::StatusOr<const Batch*> Next(absl::Duration timeout);

  // Batches that are ready and not taken yet.
  int64_t num_waiting() const;

 private:
  explicit BatchLoader(Options options);

  void Run();
  // Returns false when the loader stops.
  bool Produce(int64_t step, int64_t micro_batch, const StepRange& range);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || produced_ - released_ < options_.depth;
  }
  bool HasBatch() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return finished_ || taken_ < produced_;
  }

  Options options_;
  // The loader's thread owns a slot from its release until it is filled, the
  // caller while it is taken. The counters below hand slots over.
  std::vector<Batch> ring_;

  mutable absl::Mutex mu_;
  int64_t produced_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t released_ ABSL_GUARDED_BY(mu_) = 0;  // taken_ - 1 while one is held
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mu_);  // of the source
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
