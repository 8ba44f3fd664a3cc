// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tributary {

// The order of an epoch's rows when they are read from disk: windows of rows,
// each small enough for memory. The rows are cut into chunks that lie together
// on disk. An epoch shuffles the chunks, divides them evenly among the windows,
// and shuffles the rows of each window. So a disk reads whole chunks, and the
// order depends only on these options and the epoch, not on the number of
// ranks.
//
// With one window the order is ShuffledOrder's
// (worker/train/data/batches/sampler.h), that of rows in memory.
class WindowOrder {
 public:
  struct Options {
    int64_t rows = 0;                      // at least 1
    std::optional<uint64_t> shuffle_seed;  // none: the order of the file
    int64_t chunk_rows = 1;
    int64_t window_chunks = 1;  // at most so many chunks in a window
  };
  // Chunks and windows for a buffer of this size. A window has at least one
  // row.
  static Options ForBuffer(int64_t rows, std::optional<uint64_t> shuffle_seed,
                           int64_t row_bytes, int64_t buffer_bytes);

  explicit WindowOrder(const Options& options);

  int64_t rows() const { return options_.rows; }
  int64_t num_windows() const { return num_windows_; }
  // The position in the epoch of a window's first row; rows() for
  // num_windows(). Windows have the same positions in every epoch.
  int64_t Begin(int64_t window) const;
  // The window of a position.
  int64_t WindowOf(int64_t position) const;
  // The rows at positions Begin(window) to Begin(window + 1) - 1.
  std::vector<uint32_t> Rows(int64_t epoch, int64_t window) const;

 private:
  int64_t FirstChunk(int64_t window) const {
    return window * num_chunks_ / num_windows_;
  }

  Options options_;
  int64_t num_chunks_ = 0;
  int64_t num_windows_ = 0;
};

}  // namespace tributary
