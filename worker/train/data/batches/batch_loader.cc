// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/batch_loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<BatchLoader>> BatchLoader::Start(
    Options options) {
  if (options.first_step < 0 ||
      options.first_step > options.plan.total_steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted a first step from 0 to ",
                     options.plan.total_steps(), ", got ", options.first_step));
  }
  if (options.depth < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted at least 2 batches in memory, got ", options.depth));
  }
  std::unique_ptr<BatchLoader> loader(new BatchLoader(std::move(options)));
  loader->thread_ = std::thread([raw = loader.get()] { raw->Run(); });
  return loader;
}

BatchSource SampledBatches(
    ShardedSampler sampler,
    std::function<void(absl::Span<const int64_t> rows, Batch* out)> gather) {
  return [sampler = std::move(sampler), gather = std::move(gather)](
             int64_t epoch, int64_t batch, Batch* out) mutable {
    gather(sampler.Rows(epoch, batch), out);
    return absl::OkStatus();
  };
}

BatchLoader::BatchLoader(Options options)
    : options_(std::move(options)), ring_(options_.depth) {}

BatchLoader::~BatchLoader() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void BatchLoader::Run() {
  for (int64_t step = options_.first_step; step < options_.plan.total_steps();
       ++step) {
    const StepRange range = options_.plan.At(step);
    for (int64_t i = 0; i < range.batches; ++i) {
      if (!Produce(step, i, range)) return;
    }
  }
  absl::MutexLock lock(&mu_);
  finished_ = true;
}

bool BatchLoader::Produce(int64_t step, int64_t micro_batch,
                          const StepRange& range) {
  Batch* batch;
  {
    // Waits without a deadline: the caller decides when to continue, and the
    // destructor ends the wait.
    absl::MutexLock lock(&mu_, absl::Condition(this, &BatchLoader::HasRoom));
    if (stopping_) return false;
    batch = &ring_[produced_ % ring_.size()];
  }
  const absl::Status status =
      options_.fill(range.epoch, range.first_batch + micro_batch, batch);
  const BatchCut& cut = options_.plan.cut();
  batch->first_row = micro_batch * cut.global_batch + options_.rank;
  batch->row_stride = cut.world;
  batch->step = step;
  batch->micro_batch = micro_batch;
  absl::MutexLock lock(&mu_);
  if (!status.ok()) {
    error_ = status;
    finished_ = true;
    return false;
  }
  ++produced_;
  return true;
}

int64_t BatchLoader::num_waiting() const {
  absl::MutexLock lock(&mu_);
  return produced_ - taken_;
}

absl::StatusOr<const Batch*> BatchLoader::Next(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  released_ = taken_;
  if (!AwaitFor(&mu_, absl::Condition(this, &BatchLoader::HasBatch), timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("waited for batch ", taken_, " after step ",
                     options_.first_step, " to be gathered"));
  }
  if (taken_ == produced_) {
    TRIBUTARY_RETURN_IF_ERROR(error_);
    return absl::OutOfRangeError(absl::StrCat(
        "the last batch of step ", options_.plan.total_steps(), " is taken"));
  }
  return &ring_[taken_++ % ring_.size()];
}

}  // namespace tributary
