// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/counter_random.h"

namespace tributary {

absl::Status BatchCut::Validate() const {
  constexpr int64_t kMaxRows = std::numeric_limits<uint32_t>::max();
  if (rows < 1 || rows > kMaxRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted 1 to ", kMaxRows, " rows, got ", rows));
  }
  if (global_batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted a global batch of at least 1 row, got ", global_batch));
  }
  if (world < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted at least 1 rank, got ", world));
  }
  return absl::OkStatus();
}

int64_t BatchCut::GlobalRows(int64_t batch) const {
  TRIBUTARY_CHECK(batch >= 0 && batch < batches_per_epoch());
  return std::min(global_batch, rows - batch * global_batch);
}

int64_t BatchCut::RankRows(int64_t batch, int rank) const {
  TRIBUTARY_CHECK(rank >= 0 && rank < world);
  const int64_t in_batch = GlobalRows(batch);
  return rank < in_batch ? (in_batch - rank - 1) / world + 1 : 0;
}

std::vector<uint32_t> ShuffledOrder(int64_t rows, uint64_t seed,
                                    int64_t epoch) {
  // Separates these draws from other uses of the same seed.
  constexpr uint64_t kShuffleStream = 0x73687566666c6531;
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  for (uint64_t i = order.size() - 1; i > 0; --i) {
    const uint64_t draw = HashBits(seed ^ kShuffleStream, epoch, i);
    // floor(draw / 2^64 * (i + 1)). The bias is below 2^-32.
    const uint64_t j = absl::Uint128High64(absl::uint128(draw) * (i + 1));
    std::swap(order[i], order[j]);
  }
  return order;
}

absl::StatusOr<ShardedSampler> ShardedSampler::Create(const Options& options) {
  TRIBUTARY_RETURN_IF_ERROR(options.cut.Validate());
  if (options.rank < 0 || options.rank >= options.cut.world) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted a rank from 0 below ", options.cut.world, ", got ",
                     options.rank));
  }
  return ShardedSampler(options);
}

absl::Span<const int64_t> ShardedSampler::Rows(int64_t epoch, int64_t batch) {
  const BatchCut& cut = options_.cut;
  TRIBUTARY_CHECK(epoch >= 0);
  if (options_.shuffle_seed.has_value() && epoch != epoch_) {
    order_ = ShuffledOrder(cut.rows, *options_.shuffle_seed, epoch);
    epoch_ = epoch;
  }
  rows_.resize(cut.RankRows(batch, options_.rank));
  int64_t position = batch * cut.global_batch + options_.rank;
  for (int64_t& row : rows_) {
    row = order_.empty() ? position : order_[position];
    position += cut.world;
  }
  return rows_;
}

}  // namespace tributary
