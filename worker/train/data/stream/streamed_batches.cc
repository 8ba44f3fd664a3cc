// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/streamed_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Adds the rows of `part` at the row `first` of `out`, whose features have
// their final size.
void AddRows(const Batch& part, int64_t first, Batch* out) {
  const size_t width =
      part.rows > 0 ? part.features.size() / static_cast<size_t>(part.rows) : 0;
  std::copy(part.features.data(), part.features.data() + part.features.size(),
            out->features.data() + first * width);
  out->labels.insert(out->labels.end(), part.labels.begin(), part.labels.end());
  out->targets.insert(out->targets.end(), part.targets.begin(),
                      part.targets.end());
}

}  // namespace

std::vector<int64_t> StreamedBatches::OwnPositions(int64_t window) const {
  const BatchCut& cut = options_.cut;
  const int64_t begin = options_.order.Begin(window);
  const int64_t end = options_.order.Begin(window + 1);
  std::vector<int64_t> positions;
  positions.reserve((end - begin) / cut.world + 1);
  for (int64_t position = begin; position < end; ++position) {
    if (position % cut.global_batch % cut.world == options_.rank) {
      positions.push_back(position);
    }
  }
  return positions;
}

absl::StatusOr<StreamedBatches::Window> StreamedBatches::Read(
    int64_t epoch, int64_t number) const {
  Window window{.epoch = epoch, .number = number};
  std::vector<int64_t> rows = OwnPositions(number);
  if (rows.empty()) return window;
  const int64_t begin = options_.order.Begin(number);
  {
    const std::vector<uint32_t> all = options_.order.Rows(epoch, number);
    for (int64_t& row : rows) row = all[row - begin];
  }
  // Reads in the order of the file, and remembers where each row went.
  std::vector<int64_t> by_row(rows.size());
  std::iota(by_row.begin(), by_row.end(), 0);
  std::sort(by_row.begin(), by_row.end(),
            [&rows](int64_t a, int64_t b) { return rows[a] < rows[b]; });
  window.order.resize(rows.size());
  for (size_t i = 0; i < by_row.size(); ++i) {
    window.order[by_row[i]] = static_cast<int64_t>(i);
  }
  std::sort(rows.begin(), rows.end());
  TRIBUTARY_ASSIGN_OR_RETURN(window.rows, options_.data->Load(rows));
  return window;
}

void StreamedBatches::ReadAhead() {
  int64_t epoch = window_.epoch, number = window_.number + 1;
  if (number == options_.order.num_windows()) {
    ++epoch;
    number = 0;
  }
  ahead_ = std::async(std::launch::async,
                      [this, epoch, number] { return Read(epoch, number); });
}

absl::Status StreamedBatches::Advance() {
  TRIBUTARY_ASSIGN_OR_RETURN(window_, ahead_.get());
  ReadAhead();
  return absl::OkStatus();
}

absl::Status StreamedBatches::Seek(int64_t epoch, int64_t batch) {
  if (ahead_.valid()) ahead_.wait();
  const int64_t begin = batch * options_.cut.global_batch;
  const int64_t number = options_.order.WindowOf(begin);
  TRIBUTARY_ASSIGN_OR_RETURN(window_, Read(epoch, number));
  // Skips the rank's rows of the window that earlier batches use.
  for (int64_t position : OwnPositions(number)) {
    if (position < begin) ++window_.next;
  }
  ReadAhead();
  return absl::OkStatus();
}

absl::Status StreamedBatches::Fill(int64_t epoch, int64_t batch, Batch* out) {
  if (epoch != next_epoch_ || batch != next_batch_) {
    TRIBUTARY_RETURN_IF_ERROR(Seek(epoch, batch));
  }
  next_epoch_ = -1;  // if an error follows
  while (window_.epoch < epoch) TRIBUTARY_RETURN_IF_ERROR(Advance());
  const int64_t wanted = options_.cut.RankRows(batch, options_.rank);
  int64_t filled = 0;
  while (filled < wanted) {
    const auto left = static_cast<int64_t>(window_.order.size() - window_.next);
    const int64_t now = std::min(left, wanted - filled);
    const absl::Span<const int64_t> rows(window_.order.data() + window_.next,
                                         static_cast<size_t>(now));
    if (now == wanted) {
      window_.rows->Gather(rows, out);
    } else if (now > 0) {
      window_.rows->Gather(rows, &part_);
      if (filled == 0) {
        out->features.Resize(part_.features.size() / now * wanted);
        out->labels.clear();
        out->targets.clear();
      }
      AddRows(part_, filled, out);
    }
    window_.next += now;
    filled += now;
    if (filled < wanted) TRIBUTARY_RETURN_IF_ERROR(Advance());
  }
  if (wanted == 0) options_.data->Gather({}, out);
  out->rows = wanted;
  const bool last = batch + 1 == options_.cut.batches_per_epoch();
  next_epoch_ = last ? epoch + 1 : epoch;
  next_batch_ = last ? 0 : batch + 1;
  return absl::OkStatus();
}

}  // namespace tributary
