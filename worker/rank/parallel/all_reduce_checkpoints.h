// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "common/checkpoint/checkpointer.h"
#include "worker/rank/parallel/all_reduce_options.h"
#include "worker/rank/parallel/local_optimizer.h"
#include "worker/rank/parallel/rank_sums.h"

namespace tributary {

// Reads and writes the checkpoints of an AllReduceSynchronizer. The arguments
// of the constructor must outlive it.
class AllReduceCheckpoints {
 public:
  AllReduceCheckpoints(const AllReduceOptions& options,
                       LocalOptimizer* optimizer, RankSums* sums);

  // Loads weights and state from options.checkpoints.restore.
  absl::Status Restore();
  // Compares the replicas and hands the weights and state after `steps` steps
  // to the checkpointer, if this rank writes. Does both only once for each
  // step. DataLoss names the rank whose weights or state differ from the same
  // part in the first replica. num_elements: of the model's arrays. `best`: as
  // Checkpointer::SetBest.
  absl::Status Write(int64_t steps, int64_t num_elements, bool best);

 private:
  absl::Status CompareReplicas(int64_t steps, int64_t num_elements);
  absl::Status Cut(int64_t steps);
  absl::Status Read();
  // The job's rank that holds this rank's part in another replica.
  int JobRank(int replica) const;

  const AllReduceOptions& options_;
  LocalOptimizer* const optimizer_;
  RankSums* const sums_;
  std::unique_ptr<Checkpointer> checkpointer_;  // if this rank writes
  int64_t written_ = 0;                         // step of the last one
};

}  // namespace tributary
