// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tributary {

// Splits an epoch's order of rows into batches. Global batch t is the positions
// [t G, min((t + 1) G, rows)). Rank r of W takes every W-th of them from the
// r-th on. So with G = W B the stride is that of PyTorch's DistributedSampler,
// and W ranks together see what one rank with batch size G sees. Every row
// comes once per epoch: the last batch may be short, and a rank may then have
// no row.
struct BatchCut {
  int64_t rows = 0;
  int64_t global_batch = 0;
  int world = 1;

  absl::Status Validate() const;

  int64_t batches_per_epoch() const { return (rows - 1) / global_batch + 1; }
  // GlobalRows counts the rows of all ranks.
  int64_t GlobalRows(int64_t batch) const;
  int64_t RankRows(int64_t batch, int rank) const;
};

// The order of an epoch: a Fisher-Yates shuffle of 0, 1, ..., rows - 1 that
// depends only on (rows, seed, epoch). Epochs count from 0.
std::vector<uint32_t> ShuffledOrder(int64_t rows, uint64_t seed, int64_t epoch);

// Decides which rows one rank computes on, as a pure function of the options.
// Keeps the current epoch's order, so that it is drawn once. For one thread at
// a time.
class ShardedSampler {
 public:
  struct Options {
    BatchCut cut;
    int rank = 0;
    std::optional<uint64_t> shuffle_seed;  // none: the order of the file
  };

  static absl::StatusOr<ShardedSampler> Create(const Options& options);

  // The rows of this rank in a global batch of an epoch, both counted from 0.
  // Valid until the next call.
  absl::Span<const int64_t> Rows(int64_t epoch, int64_t batch);

  const BatchCut& cut() const { return options_.cut; }
  int rank() const { return options_.rank; }

 private:
  explicit ShardedSampler(const Options& options) : options_(options) {}

  Options options_;
  int64_t epoch_ = -1;           // the epoch of order_
  std::vector<uint32_t> order_;  // empty without shuffle
  std::vector<int64_t> rows_;    // the last result of Rows
};

}  // namespace tributary
