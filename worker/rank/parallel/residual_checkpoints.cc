// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/residual_checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "common/checkpoint/restore.h"

namespace tributary {

absl::Status ResidualCheckpoints::Restore(int64_t finished,
                                          absl::Span<float* const> residuals) {
  if (finished != options_.start_step) {
    return absl::InternalError(
        absl::StrCat("rank ", options_.series.shard, " has finished ", finished,
                     " steps, its residual is of step ", options_.start_step));
  }
  if (options_.restore == nullptr ||
      TRIBUTARY_MUTATED("residual-not-restored")) {
    return absl::OkStatus();
  }
  return Unreadable(options_.restore(residuals));
}

void ResidualCheckpoints::OpenCheckpointer(absl::Span<float* const> residuals) {
  // A rank that pushes nothing writes an empty file.
  const auto blocks = absl::c_count_if(
      residuals, [](const float* residual) { return residual != nullptr; });
  Checkpointer::Options made;
  made.directory = options_.directory;
  made.series = options_.series;
  made.num_blocks = std::max<size_t>(1, static_cast<size_t>(blocks));
  made.on_written = options_.on_written;
  made.write = options_.write;
  checkpointer_ = std::make_unique<Checkpointer>(std::move(made));
}

void ResidualCheckpoints::WriteIfDue(int64_t steps,
                                     absl::Span<float* const> residuals) {
  if (options_.every_steps == 0 || steps % options_.every_steps != 0) return;
  Write(steps, residuals);
}

void ResidualCheckpoints::WriteAtEnd(int64_t steps,
                                     absl::Span<float* const> residuals) {
  if (options_.at_end && options_.at_end(steps)) Write(steps, residuals);
}

void ResidualCheckpoints::Write(int64_t steps,
                                absl::Span<float* const> residuals) {
  if (std::exchange(written_, steps) == steps) return;
  if (checkpointer_ == nullptr) OpenCheckpointer(residuals);
  bool any = false;
  for (size_t p = 0; p < residuals.size(); ++p) {
    if (residuals[p] == nullptr) continue;
    any = true;
    const int parameter = static_cast<int>(p);
    const int64_t size = options_.series.parameters[p].size();
    Block block;
    block.index = parameter;
    block.size = size;
    block.slices.push_back({parameter, 0, size, 0});
    SharedBuffer copy(size);
    std::copy_n(residuals[p], size, copy.data());
    checkpointer_->Take({.steps = steps,
                         .block = &block,
                         .weights = std::move(copy),
                         .state = {}});
  }
  if (any) return;
  const Block none;
  checkpointer_->Take({.steps = steps,
                       .block = &none,
                       .weights = SharedBuffer(0),
                       .state = {}});
}

}  // namespace tributary
