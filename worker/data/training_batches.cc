// SPDX-License-Identifier: Apache-2.0
#include "worker/data/training_batches.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/data/stream/streamed_batches.h"
#include "worker/data/stream/window_order.h"

namespace tributary {

absl::StatusOr<BatchSource> TrainingBatches(const Dataset& train,
                                            const v1::DataSpec& spec,
                                            const BatchCut& cut, int rank) {
  std::optional<uint64_t> seed;
  if (!spec.shuffle().none()) seed = spec.shuffle().seed();
  TRIBUTARY_ASSIGN_OR_RETURN(
      ShardedSampler sampler,
      ShardedSampler::Create({.cut = cut, .rank = rank, .shuffle_seed = seed}));
  if (!train.on_disk()) {
    return SampledBatches(std::move(sampler),
                          [&train](absl::Span<const int64_t> rows, Batch* out) {
                            train.Gather(rows, out);
                          });
  }
  // std::function wants a copy; the copies share the windows.
  auto batches = std::make_shared<StreamedBatches>(StreamedBatches::Options{
      .data = &train,
      .cut = cut,
      .rank = rank,
      .order = WindowOrder(WindowOrder::ForBuffer(
          cut.rows, seed, train.row_bytes(), spec.stream().buffer_bytes()))});
  return [batches](int64_t epoch, int64_t batch, Batch* out) {
    return batches->Fill(epoch, batch, out);
  };
}

}  // namespace tributary
