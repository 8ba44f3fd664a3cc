// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/transfer_lane.h"

#include <algorithm>
#include <utility>

#include "common/host/steady_waits.h"
#include "worker/rank/client/transfer/transfer.h"

namespace tributary {

TransferLane::TransferLane(Options options)
    : options_(std::move(options)), window_(options_.most_unanswered) {
  if (options_.driver == Driver::kOwnThread)
    thread_.emplace([this] { Loop(); });
}

TransferLane::~TransferLane() {
  options_.calls->Shutdown();
  if (thread_) thread_->join();
}

void TransferLane::Loop() {
  while (true) {
    switch (options_.calls->HandleNext(LiftIn())) {
      case CallQueue::Next::kShutdown:
        return;
      case CallQueue::Next::kTimeout: {
        absl::MutexLock lock(&mu_);
        window_.Lift();
        break;
      }
      case CallQueue::Next::kHandled:
        break;
    }
    SendAdded();
  }
}

absl::Duration TransferLane::LiftIn() {
  absl::MutexLock lock(&mu_);
  // SendAdded leaves the transfers that may not be sent yet.
  return added_.empty() ? absl::InfiniteDuration()
                        : window_.LiftIn(SteadyNow());
}

void TransferLane::Wake::Proceed(bool /*ok*/) {
  absl::MutexLock lock(&lane_->mu_);
  lane_->woken_ = false;
}

// A transfer that may not be sent waits for others of this lane to be answered.
// When the round is stopped, the others end, and this function runs again.
Transfer* TransferLane::NextToSend() {
  const bool stopped = options_.stopped();
  absl::MutexLock lock(&mu_);
  const auto next = std::find_if(
      added_.begin(), added_.end(),
      [this, stopped](const Transfer* transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
          mu_) { return stopped || window_.MaySend(transfer->shard()); });
  if (next == added_.end()) return nullptr;
  Transfer* const transfer = *next;
  added_.erase(next);
  window_.Sent(transfer->shard(), SteadyNow());
  return transfer;
}

void TransferLane::SendAdded() {
  while (Transfer* const transfer = NextToSend()) {
    transfer->Send();
    // Handles the answers that have arrived.
    while (options_.calls->HandleNext(absl::ZeroDuration()) ==
           CallQueue::Next::kHandled) {
    }
  }
}

void TransferLane::Begin() {
  absl::MutexLock lock(&mu_);
  window_.Begin(SteadyNow());
}

void TransferLane::Add(Transfer* transfer) {
  if (!thread_) return transfer->Send();
  {
    absl::MutexLock lock(&mu_);
    added_.push_back(transfer);
    if (std::exchange(woken_, true)) return;
  }
  wake_alarm_ = options_.calls->SetAlarm(absl::ZeroDuration(), &wake_);
}

void TransferLane::Ended(int shard) {
  absl::MutexLock lock(&mu_);
  window_.Ended(shard, SteadyNow());
}

}  // namespace tributary
