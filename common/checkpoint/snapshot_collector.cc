// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/snapshot_collector.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace tributary {

BlockSnapshot::BlockSnapshot(const BlockCut& cut)
    : block(*cut.block),
      skipped_steps(cut.skipped_steps),
      weights(cut.weights) {
  for (const float* from : cut.state) {
    state.emplace_back(block.size);
    std::copy_n(from, block.size, state.back().data());
  }
}

std::vector<BlockImage> ShardSnapshot::Images() const {
  std::vector<BlockImage> images;
  for (const BlockSnapshot& block : blocks) {
    BlockImage& image = images.emplace_back();
    image.slices = block.block.slices;
    image.weights = block.weights.data();
    image.num_elements = block.block.size;
    for (const SharedBuffer& state : block.state) {
      image.state.push_back(state.data());
    }
  }
  return images;
}

void SnapshotCollector::Add(int64_t step, BlockSnapshot block,
                            int64_t pause_micros) {
  ShardSnapshot& open = open_[step];
  open.step = step;
  open.blocks.push_back(std::move(block));
  open.pause_micros += pause_micros;
  if (open.blocks.size() < num_blocks_) return;
  std::sort(open.blocks.begin(), open.blocks.end(),
            [](const BlockSnapshot& a, const BlockSnapshot& b) {
              return a.block.index < b.block.index;
            });
  if (full()) GiveUpFor(step);
  waiting_.push_back(std::move(open));
  open_.erase(step);
}

bool SnapshotCollector::full() const {
  const bool best = absl::c_any_of(
      waiting_, [this](const auto& one) { return one.step == best_; });
  return waiting_.size() + (writing_ ? 1 : 0) >= kMostKept + (best ? 1 : 0);
}

void SnapshotCollector::GiveUpFor(int64_t step) {
  auto late = std::prev(waiting_.end());
  if (late->step == best_) --late;  // one more may wait beside this one
  const auto later = absl::c_find_if(
      given_up_, [&](const auto& one) { return one.step > late->step; });
  given_up_.insert(
      later, {.step = late->step,
              .file = absl::ResourceExhaustedError(absl::StrCat(
                  "the disk is too slow: the checkpoint of step ", late->step,
                  " was still waiting to be written when that of step ", step,
                  " was due")),
              .pause_seconds = 1e-6 * static_cast<double>(late->pause_micros)});
  waiting_.erase(late);
}

SnapshotCollector::Work SnapshotCollector::Take() {
  Work work{.failed = {}, .snapshot = std::move(waiting_.front())};
  waiting_.pop_front();
  writing_ = true;
  const auto later = std::find_if(given_up_.begin(), given_up_.end(),
                                  [&](const WrittenSnapshot& one) {
                                    return one.step > work.snapshot.step;
                                  });
  work.failed.assign(given_up_.begin(), later);
  given_up_.erase(given_up_.begin(), later);
  return work;
}

}  // namespace tributary
