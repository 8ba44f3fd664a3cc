// SPDX-License-Identifier: Apache-2.0
#include "server/store/weight_versions.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace tributary {

WeightVersions::WeightVersions(int64_t size, int kept,
                               std::shared_ptr<SharedArena> memory)
    : size_(size),
      kept_(kept),
      memory_(std::move(memory)),
      newest_(New()),
      earlier_(static_cast<size_t>(std::max(1, kept))) {}

const SharedBuffer* WeightVersions::Before(int64_t age) const {
  if (age < 1 || age > num_earlier_) return nullptr;
  return &earlier_[static_cast<size_t>(age - 1)];
}

float* WeightVersions::Writable() {
  if (newest_.Unique() && kept_ == 0) return newest_.data();
  SharedBuffer& oldest = earlier_.back();
  if (!oldest || !oldest.Unique()) {
    oldest = SharedBuffer();  // gives back its memory before more is taken
    oldest = New();
  }
  return oldest.data();
}

void WeightVersions::Finish(const float* written) {
  if (written == newest_.data()) {
    num_earlier_ = 0;
    return;
  }
  std::swap(newest_, earlier_.back());
  std::rotate(earlier_.begin(), earlier_.end() - 1, earlier_.end());
  num_earlier_ = std::min(num_earlier_ + 1, static_cast<int>(earlier_.size()));
}

float* WeightVersions::BeginAgain() {
  num_earlier_ = 0;
  if (!newest_.Unique()) newest_ = New();
  return newest_.data();
}

float* WeightVersions::BeginBefore() {
  TRIBUTARY_CHECK(kept_ > 0);
  num_earlier_ = 1;
  earlier_.front() = New();
  return earlier_.front().data();
}

}  // namespace tributary
