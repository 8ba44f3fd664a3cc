// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/send_window.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr int kLongestPause = 1023;
// The patience is this many times the mean time of the last round's transfers.
constexpr int kPatience = 4;

}  // namespace

void SendWindow::Begin(absl::Duration now) {
  if (limited_ && ended_ > 0) {
    pause_ = 0;
    patience_ = std::clamp(kPatience * (total_ / ended_), kLeastPatience,
                           kMostPatience);
  }
  limited_ = most_ > 0 && paused_ == 0;
  if (paused_ > 0) --paused_;
  ended_ = 0;
  total_ = absl::ZeroDuration();
  progress_ = now;
  sent_.clear();
}

bool SendWindow::MaySend(int shard) const {
  if (!limited_) return true;
  const auto found = sent_.find(shard);
  return found == sent_.end() || found->second.size() < most_;
}

void SendWindow::Sent(int shard, absl::Duration now) {
  sent_[shard].push_back(now);
  progress_ = now;
}

void SendWindow::Ended(int shard, absl::Duration now) {
  std::deque<absl::Duration>& sent = sent_[shard];
  progress_ = now;
  if (sent.empty()) return;
  ++ended_;
  total_ += now - sent.front();
  sent.pop_front();
}

void SendWindow::Lift() {
  limited_ = false;
  pause_ = std::min(2 * pause_ + 1, kLongestPause);
  paused_ = pause_;
}

}  // namespace tributary
