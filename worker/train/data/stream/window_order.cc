// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/window_order.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "worker/train/data/batches/sampler.h"
#include "worker/train/data/readers/counter_random.h"

namespace tributary {
namespace {

// A window of this many chunks mixes rows from as many places of the file.
constexpr int64_t kChunksOfBuffer = 256;

// Separate these draws from other uses of the same seed.
constexpr uint64_t kChunkStream = 0x6368756e6b733161;
constexpr uint64_t kWindowStream = 0x77696e646f777331;

}  // namespace

WindowOrder::Options WindowOrder::ForBuffer(
    int64_t rows, std::optional<uint64_t> shuffle_seed, int64_t row_bytes,
    int64_t buffer_bytes) {
  const int64_t buffer_rows =
      std::max<int64_t>(1, buffer_bytes / std::max<int64_t>(1, row_bytes));
  Options options{.rows = rows, .shuffle_seed = shuffle_seed};
  options.chunk_rows = std::max<int64_t>(1, buffer_rows / kChunksOfBuffer);
  options.window_chunks = buffer_rows / options.chunk_rows;
  return options;
}

WindowOrder::WindowOrder(const Options& options) : options_(options) {
  TRIBUTARY_CHECK(options.rows > 0 && options.chunk_rows > 0 &&
                  options.window_chunks > 0);
  num_chunks_ = (options.rows - 1) / options.chunk_rows + 1;
  num_windows_ = (num_chunks_ - 1) / options.window_chunks + 1;
}

int64_t WindowOrder::Begin(int64_t window) const {
  return std::min(options_.rows, FirstChunk(window) * options_.chunk_rows);
}

int64_t WindowOrder::WindowOf(int64_t position) const {
  TRIBUTARY_CHECK(position >= 0 && position < options_.rows);
  const int64_t chunk = position / options_.chunk_rows;
  // The last window whose first chunk is not after `chunk`.
  int64_t window =
      std::min(num_windows_ - 1, chunk * num_windows_ / num_chunks_);
  while (window + 1 < num_windows_ && FirstChunk(window + 1) <= chunk) ++window;
  while (FirstChunk(window) > chunk) --window;
  return window;
}

std::vector<uint32_t> WindowOrder::Rows(int64_t epoch, int64_t window) const {
  const int64_t begin = Begin(window), end = Begin(window + 1);
  std::vector<uint32_t> rows(end - begin);
  if (!options_.shuffle_seed.has_value()) {
    std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(begin));
    return rows;
  }
  const uint64_t seed = *options_.shuffle_seed;
  if (num_windows_ == 1) return ShuffledOrder(options_.rows, seed, epoch);
  // A chunk that is not full stays the last one, so that windows begin at the
  // same positions in every epoch.
  const int64_t full = options_.rows / options_.chunk_rows;
  const std::vector<uint32_t> chunks =
      ShuffledOrder(full, seed ^ kChunkStream, epoch);
  const std::vector<uint32_t> order =
      ShuffledOrder(static_cast<int64_t>(rows.size()),
                    HashBits(seed ^ kWindowStream, epoch, window), epoch);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t position = begin + order[i];
    const int64_t place = position / options_.chunk_rows;
    const int64_t chunk = place < full ? chunks[place] : place;
    rows[i] = static_cast<uint32_t>(chunk * options_.chunk_rows +
                                    position % options_.chunk_rows);
  }
  return rows;
}

}  // namespace tributary
