// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/train/data/batches/batch.h"
#include "worker/train/data/batches/sampler.h"
#include "worker/train/data/dataset.h"
#include "worker/train/data/stream/window_order.h"

namespace tributary {

// The batches of one rank from rows on disk, in the order of a WindowOrder.
// Keeps this rank's share of two windows in memory: the window in use and the
// next one, which another thread reads meanwhile. For one thread at a time.
class StreamedBatches {
 public:
  struct Options {
    const Dataset* data = nullptr;  // on disk; outlives the batches
    BatchCut cut;
    int rank = 0;
    WindowOrder order;
  };
  explicit StreamedBatches(const Options& options) : options_(options) {}
  StreamedBatches(const StreamedBatches&) = delete;
  StreamedBatches& operator=(const StreamedBatches&) = delete;

  // Fills a batch with the rank's rows of a global batch of an epoch, both from
  // 0. Cheap for the batch that follows the previous one; any other batch reads
  // its window again. Errors as in StoredRows::Read.
  absl::Status Fill(int64_t epoch, int64_t batch, Batch* out);

 private:
  // This rank's rows of a window.
  struct Window {
    int64_t epoch = 0;
    int64_t number = 0;
    std::unique_ptr<const Dataset> rows;  // in the order of the file; or null
    std::vector<int64_t> order;  // indices into `rows`, as they are used
    size_t next = 0;             // in `order`
  };

  absl::StatusOr<Window> Read(int64_t epoch, int64_t number) const;
  // The positions of a window that belong to this rank.
  std::vector<int64_t> OwnPositions(int64_t window) const;
  // Begins to read the window after the current one.
  void ReadAhead();
  // Makes the window of a batch the current one, and goes to the batch in it.
  absl::Status Seek(int64_t epoch, int64_t batch);
  // Makes the next window the current one.
  absl::Status Advance();

  const Options options_;
  Window window_;
  int64_t next_epoch_ = -1;  // the batch that Fill expects; -1: Fill seeks
  int64_t next_batch_ = 0;
  Batch part_;  // of a batch that lies in several windows
  std::future<absl::StatusOr<Window>> ahead_;
};

}  // namespace tributary
