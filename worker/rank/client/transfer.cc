// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/wire/retry_policy.h"

namespace tributary {
namespace {

constexpr RetryPolicy kPolicy = TransferLedger::kPolicy;
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
    : options_(std::move(options)), window_(options_.most_unanswered) {
  if (HasOwnThread()) thread_.emplace([this] { Loop(); });
}

TransferRound::~TransferRound() {
  options_.calls->Shutdown();
  if (thread_) thread_->join();
}

bool TransferRound::Earlier::operator()(const Transfer* a,
                                        const Transfer* b) const {
  return a->number() < b->number();
}

void TransferRound::Loop() {
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

absl::Duration TransferRound::LiftIn() {
  absl::MutexLock lock(&mu_);
  // SendAdded leaves the transfers that may not be sent yet.
  return added_.empty() ? absl::InfiniteDuration()
                        : window_.LiftIn(SteadyNow());
}

void TransferRound::Wake::Proceed(bool /*ok*/) {
  absl::MutexLock lock(&round_->mu_);
  round_->woken_ = false;
}

Transfer* TransferRound::NextToSend() {
  absl::MutexLock lock(&mu_);
  // A stopped round's transfers end without a call.
  const auto next = std::find_if(
      added_.begin(), added_.end(),
      [this](const Transfer* transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return ledger_.stopped() || window_.MaySend(transfer->shard());
      });
  if (next == added_.end()) return nullptr;
  Transfer* const transfer = *next;
  added_.erase(next);
  window_.Sent(transfer->shard(), SteadyNow());
  return transfer;
}

void TransferRound::SendAdded() {
  while (Transfer* const transfer = NextToSend()) {
    transfer->Send();
    // Handles the answers that have arrived.
    while (options_.calls->HandleNext(absl::ZeroDuration()) ==
           CallQueue::Next::kHandled) {
    }
  }
}

void TransferRound::Begin(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  ledger_.Begin(SteadyNow(), timeout);
  window_.Begin(SteadyNow());
}

bool TransferRound::AwaitNews(absl::Duration timeout) {
  const auto news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return HasNewsLocked();
  };
  if (HasOwnThread()) {
    absl::MutexLock lock(&mu_);
    return AwaitFor(&mu_, absl::Condition(&news), timeout);
  }
  const absl::Duration until = SteadyNow() + timeout;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (HasNewsLocked()) return true;
    }
    if (options_.calls->HandleNext(until - SteadyNow()) !=
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
    if (waiting && options_.on_waiting) options_.on_waiting(*waiting);
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
    if (HasOwnThread()) {
      added_.push_back(transfer);
      if (std::exchange(woken_, true)) return;
    }
  }
  if (HasOwnThread()) {
    wake_alarm_ = options_.calls->SetAlarm(absl::ZeroDuration(), &wake_);
  } else {
    transfer->Send();
  }
}

std::optional<absl::Duration> TransferRound::After(Transfer* transfer,
                                                   const absl::Status& status,
                                                   int failures) {
  absl::MutexLock lock(&mu_);
  const bool failed = !ledger_.status().ok();
  const std::optional<absl::Duration> pause = ledger_.After(
      status, transfer->what(), failures,
      Jitter(options_.salt, transfer->number(), failures), SteadyNow());
  if (pause) {
    ++retries;
    return pause;
  }
  active_.erase(transfer);
  window_.Ended(transfer->shard(), SteadyNow());
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
  if (options_.on_waiting) options_.on_waiting(wait);
}

void Transfer::Start(TransferRound* round, Work work) {
  round->Add(new Transfer(round, std::move(work)));
}

void Transfer::Send() {
  if (const int64_t delay = round_->NextDelayMicros(); delay > 0) {
    SetAlarm(State::kDelayedSend, delay);
  } else {
    Call();
  }
}

void Transfer::Call() {
  if (round_->Stopped()) return RetryOrEnd(absl::CancelledError("stopped"));
  const absl::Duration hold = round_->HoldNow();
  state_ = State::kCalling;
  const grpc::ByteBuffer request =
      work_.request(static_cast<uint32_t>(absl::ToInt64Milliseconds(hold)));
  {
    absl::MutexLock lock(&mu_);
    called_ = std::min(called_, SteadyNow());
    call_ = round_->calls().Start(work_.shard, work_.method, request,
                                  hold + kPolicy.margin, this);
  }
  // The round may have been stopped before there was a call to cancel.
  if (round_->Stopped()) Cancel();
}

void Transfer::Cancel() {
  absl::MutexLock lock(&mu_);
  if (call_) call_->Cancel();
}

std::string Transfer::Silence() const {
  absl::MutexLock lock(&mu_);
  const absl::Duration silent = SteadyNow() - called_;
  if (!kPolicy.IsSilent(silent)) return "";
  return absl::StrCat("an answer to the ", work_.what, " for ",
                      absl::ToInt64Seconds(silent), " s");
}

void Transfer::Proceed(bool /*ok*/) {
  if (state_ == State::kCalling) {
    absl::MutexLock lock(&mu_);
    answer_ = call_->TakeAnswer();
    // An early DEADLINE_EXCEEDED is the server's answer; one of a silent server
    // is this client's own deadline.
    const bool answered = !absl::IsDeadlineExceeded(answer_.status()) ||
                          !kPolicy.IsSilent(SteadyNow() - called_);
    if (answered) called_ = absl::InfiniteDuration();
  }
  switch (state_) {
    case State::kDelayedSend:
      return Call();
    case State::kBackingOff:
      return Send();
    case State::kDelayedReceive:
      return Receive();
    case State::kCalling:
      if (const int64_t delay = round_->NextDelayMicros(); delay > 0) {
        return SetAlarm(State::kDelayedReceive, delay);
      }
      return Receive();
  }
}

void Transfer::Receive() {
  RetryOrEnd(answer_.ok() ? work_.receive(*answer_) : answer_.status());
}

void Transfer::RetryOrEnd(const absl::Status& status) {
  const std::optional<absl::Duration> pause =
      round_->After(this, status, attempts_);
  if (!pause) {
    delete this;
    return;
  }
  TellWaiting(status);
  ++attempts_;
  SetAlarm(State::kBackingOff, absl::ToInt64Microseconds(*pause));
}

void Transfer::TellWaiting(const absl::Status& status) {
  if (const std::string silence = Silence(); !silence.empty()) {
    round_->SetWaitingFor(WaitForServer(silence, work_.shard));
  } else if (absl::IsUnavailable(status)) {
    round_->SetWaitingFor(WaitForServer(
        absl::StrCat(work_.what, ": ", status.message()), work_.shard));
  } else if (v1::ErrorDetail detail = DetailOf(status); detail.has_wait()) {
    round_->SetWaitingFor(std::move(*detail.mutable_wait()));
  } else {
    round_->SetWaitingFor(WaitFor(std::string(status.message())));
  }
}

void Transfer::SetAlarm(State state, int64_t micros) {
  state_ = state;
  alarm_ = round_->calls().SetAlarm(absl::Microseconds(micros), this);
}

}  // namespace tributary
