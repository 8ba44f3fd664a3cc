// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/training_batches.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/data/stream/streamed_batches.h"
#include "worker/train/data/stream/window_order.h"

namespace tributary {

namespace {

std::optional<uint64_t> ShuffleSeed(const v1::DataSpec& spec) {
  if (spec.shuffle().none()) return std::nullopt;
  return spec.shuffle().seed();
}

WindowOrder::Options WindowsOnDisk(const Dataset& train,
                                   const v1::DataSpec& spec) {
  return WindowOrder::ForBuffer(train.rows(), ShuffleSeed(spec),
                                train.row_bytes(),
                                spec.stream().buffer_bytes());
}

}  // namespace

std::string WindowsOf(const Dataset& train, const v1::DataSpec& spec) {
  if (!train.on_disk() || spec.shuffle().none()) return "";
  const WindowOrder::Options windows = WindowsOnDisk(train, spec);
  if (WindowOrder(windows).num_windows() == 1) return "";
  return absl::StrCat(", in windows of ", windows.window_chunks, " chunks of ",
                      windows.chunk_rows, " rows");
}

absl::StatusOr<BatchSource> TrainingBatches(const Dataset& train,
                                            const v1::DataSpec& spec,
                                            const BatchCut& cut, int rank) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      ShardedSampler sampler,
      ShardedSampler::Create(
          {.cut = cut, .rank = rank, .shuffle_seed = ShuffleSeed(spec)}));
  if (!train.on_disk()) {
    return SampledBatches(std::move(sampler),
                          [&train](absl::Span<const int64_t> rows, Batch* out) {
                            train.Gather(rows, out);
                          });
  }
  // std::function copies its target; the copies share the windows.
  auto batches = std::make_shared<StreamedBatches>(StreamedBatches::Options{
      .data = &train,
      .cut = cut,
      .rank = rank,
      .order = WindowOrder(WindowsOnDisk(train, spec))});
  return [batches](int64_t epoch, int64_t batch, Batch* out) {
    return batches->Fill(epoch, batch, out);
  };
}

}  // namespace tributary
