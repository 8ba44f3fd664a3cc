#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/data/batch.h"
#include "worker/data/sampler.h"
#include "worker/data/step_plan.h"

namespace tributary {

// Gathers one rank's batches ahead of the computation, in a thread of its own
// and in the memory of a fixed ring. Next is for one thread at a time.
class BatchLoader {
 public:
  struct Options {
    // Fills a batch with these rows; called by the loader's thread alone.
    // Usually Dataset::Gather.
    std::function<void(absl::Span<const int64_t> rows, Batch* out)> gather;
    ShardedSampler sampler;
    StepPlan plan;
    int64_t first_step = 0;  // where a run begins or goes on
    int depth = 3;           // batches in memory, the caller's included
  };

  // InvalidArgument when first_step is past the plan or depth is below 2.
  static absl::StatusOr<std::unique_ptr<BatchLoader>> Start(Options options);

  // Stops at once: what is gathered but not taken is dropped.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The next micro-batch, from the first of first_step to the last of the
  // plan. It is the caller's until the next call. DeadlineExceeded when it is
  // not there in time (ask again); OutOfRange after the last.
  absl::StatusOr<const Batch*> Next(absl::Duration timeout);

  // Batches that are gathered and not taken yet.
  int64_t num_waiting() const;

 private:
  explicit BatchLoader(Options options);

  void Run();
  // False when the loader stops.
  bool Produce(int64_t step, int64_t micro_batch, const StepRange& range);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || produced_ - released_ < options_.depth;
  }
  bool HasBatch() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return finished_ || taken_ < produced_;
  }

  Options options_;
  // A slot is the loader's thread's from its release until it is produced, and
  // the caller's while it is taken; the counters below hand it over.
  std::vector<Batch> ring_;

  mutable absl::Mutex mu_;
  int64_t produced_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t released_ ABSL_GUARDED_BY(mu_) = 0;  // taken_ - 1 while one is held
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
