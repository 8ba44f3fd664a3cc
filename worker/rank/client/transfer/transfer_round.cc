// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/transfer_round.h"

#include <utility>

#include "common/base/check.h"
#include "common/host/steady_waits.h"
#include "worker/rank/client/transfer/transfer.h"

namespace tributary {
namespace {

// How often a round looks for silent servers.
constexpr absl::Duration kLook = absl::Milliseconds(250);

// Returns a number from 0 to 1 that differs between transfers and attempts.
double Jitter(uint64_t salt, uint64_t number, int failures) {
  const uint64_t hash = (salt + number + static_cast<uint64_t>(failures)) *
                        uint64_t{0x9E3779B97F4A7C15};
  return static_cast<double>(hash >> 40) * 0x1p-24;
}

}  // namespace

TransferRound::TransferRound(Options options)
    : driver_(options.driver),
      salt_(options.salt),
      delay_micros_(std::move(options.delay_micros)),
      on_waiting_(std::move(options.on_waiting)) {
  TRIBUTARY_CHECK(!options.calls.empty());
  TRIBUTARY_CHECK(driver_ == Driver::kOwnThread || options.calls.size() == 1);
  for (std::unique_ptr<CallQueue>& calls : options.calls) {
    lanes_.push_back(std::make_unique<TransferLane>(
        TransferLane::Options{.calls = std::move(calls),
                              .driver = driver_,
                              .most_unanswered = options.most_unanswered,
                              .stopped = [this] { return Stopped(); }}));
  }
}

bool TransferRound::Earlier::operator()(const Transfer* a,
                                        const Transfer* b) const {
  return a->number() < b->number();
}

void TransferRound::Begin(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  ledger_.Begin(SteadyNow(), timeout);
  for (const auto& lane : lanes_) lane->Begin();
}

bool TransferRound::AwaitNews(absl::Duration timeout) {
  const auto news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return HasNewsLocked();
  };
  if (driver_ == Driver::kOwnThread) {
    absl::MutexLock lock(&mu_);
    return AwaitFor(&mu_, absl::Condition(&news), timeout);
  }
  const absl::Duration until = SteadyNow() + timeout;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (HasNewsLocked()) return true;
    }
    if (lanes_[0]->calls().HandleNext(until - SteadyNow()) !=
        CallQueue::Next::kHandled) {
      return false;
    }
  }
}

absl::Status TransferRound::Wait() {
  // Every transfer ends on its own soon after the deadline.
  while (true) {
    std::optional<v1::Wait> waiting;
    const bool news = AwaitNews(kLook);
    {
      absl::MutexLock lock(&mu_);
      if (!news) FindSilenceLocked();
      waiting = std::exchange(untold_, std::nullopt);
      if (!waiting && active_.empty()) return ledger_.status();
    }
    if (waiting && on_waiting_) on_waiting_(*waiting);
  }
}

void TransferRound::FindSilenceLocked() {
  for (const Transfer* transfer : active_) {
    std::string silence = transfer->Silence();
    if (silence.empty()) continue;
    waiting_ = true;
    untold_ = WaitForServer(std::move(silence), transfer->shard());
    return;
  }
}

void TransferRound::Cancel(const std::string& why) {
  absl::MutexLock lock(&mu_);
  ledger_.Cancel(why);
  for (Transfer* transfer : active_) transfer->Cancel();
}

bool TransferRound::Stopped() const {
  absl::MutexLock lock(&mu_);
  return ledger_.stopped();
}

absl::Duration TransferRound::HoldNow() const {
  absl::MutexLock lock(&mu_);
  return ledger_.HoldFor(SteadyNow());
}

void TransferRound::Add(Transfer* transfer) {
  {
    absl::MutexLock lock(&mu_);
    transfer->SetNumber(++added_so_far_);
    active_.insert(transfer);
    ledger_.Add();
  }
  LaneOf(transfer->shard()).Add(transfer);
}

std::optional<absl::Duration> TransferRound::After(Transfer* transfer,
                                                   const absl::Status& status,
                                                   int failures) {
  absl::MutexLock lock(&mu_);
  const bool failed = !ledger_.status().ok();
  const std::optional<absl::Duration> pause =
      ledger_.After(status, transfer->what(), failures,
                    Jitter(salt_, transfer->number(), failures), SteadyNow());
  if (pause) {
    ++retries;
    return pause;
  }
  active_.erase(transfer);
  LaneOf(transfer->shard()).Ended(transfer->shard());
  if (status.ok()) {
    if (std::exchange(waiting_, false)) untold_.emplace();
  } else if (!failed) {
    for (Transfer* other : active_) other->Cancel();
  }
  return std::nullopt;
}

void TransferRound::SetWaitingFor(v1::Wait wait) {
  absl::MutexLock lock(&mu_);
  waiting_ = true;
  untold_ = std::move(wait);
}

void TransferRound::TellWaitingFor(const v1::Wait& wait) {
  {
    absl::MutexLock lock(&mu_);
    waiting_ = true;
  }
  if (on_waiting_) on_waiting_(wait);
}

}  // namespace tributary
