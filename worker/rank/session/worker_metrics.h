// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/member/step_seconds.h"
#include "common/telemetry/histogram.h"
#include "common/telemetry/metrics_writer.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Counts what a worker's metrics page shows (docs/monitoring.md). The training
// thread updates it once per step; any thread may write it out.
class WorkerMetrics {
 public:
  struct Traffic {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t retries = 0;
  };

  void CountStep(const v1::StepReport& report, const Traffic& traffic);
  void SetPrefetched(int64_t batches) { prefetched_ = batches; }

  // The shard whose server does not answer; -1: all answer.
  void SetSilentShard(int shard) { silent_shard_ = shard; }

  void Write(uint32_t rank, int num_shards, bool waiting,
             MetricsWriter* writer) const;

 private:
  Histogram step_seconds_{Histogram::SecondsBounds()};
  std::atomic<int64_t> prefetched_{0};
  std::atomic<int> silent_shard_{-1};

  mutable absl::Mutex mu_;
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t steps_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t samples_ ABSL_GUARDED_BY(mu_) = 0;
  double loss_ ABSL_GUARDED_BY(mu_) = 0;  // of the last step with one
  bool has_loss_ ABSL_GUARDED_BY(mu_) = false;
  StepSeconds seconds_ ABSL_GUARDED_BY(mu_);  // of all steps
  Traffic traffic_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
