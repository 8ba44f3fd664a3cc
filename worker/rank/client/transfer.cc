// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/retry_policy.h"

namespace tributary {
namespace {

constexpr RetryPolicy kPolicy = TransferLedger::kPolicy;
// How often a round looks for silent servers.
constexpr absl::Duration kLook = absl::Milliseconds(250);

// Differs between transfers and attempts; from 0 to 1.
double Jitter(int failures, const void* salt) {
  const uint64_t hash = (reinterpret_cast<uintptr_t>(salt) + failures) *
                        uint64_t{0x9E3779B97F4A7C15};
  return static_cast<double>(hash >> 40) * 0x1p-24;
}

}  // namespace

TransferRound::TransferRound(Driver driver, CallerProof proof,
                             uint32_t most_unanswered,
                             std::function<int64_t()> delay_micros,
                             std::function<void(const v1::Wait&)> on_waiting)
    : driver_(driver),
      proof_(std::move(proof)),
      delay_micros_(std::move(delay_micros)),
      on_waiting_(std::move(on_waiting)),
      window_(most_unanswered) {
  if (driver_ == Driver::kOwnThread) thread_ = std::thread([this] { Loop(); });
}

TransferRound::~TransferRound() {
  queue_.Shutdown();
  if (thread_.joinable()) thread_.join();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void TransferRound::Loop() {
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    switch (queue_.AsyncNext(&tag, &ok, DeadlineAfter(LiftIn()))) {
      case grpc::CompletionQueue::SHUTDOWN:
        return;
      case grpc::CompletionQueue::TIMEOUT: {
        absl::MutexLock lock(&mu_);
        window_.Lift();
        break;
      }
      case grpc::CompletionQueue::GOT_EVENT:
        Take(tag);
    }
    SendAdded();
  }
}

absl::Duration TransferRound::LiftIn() {
  absl::MutexLock lock(&mu_);
  // SendAdded leaves what may not be sent.
  return added_.empty() ? absl::InfiniteDuration()
                        : window_.LiftIn(SteadyNow());
}

void TransferRound::Take(void* tag) {
  if (tag != nullptr) return static_cast<Transfer*>(tag)->Proceed();
  absl::MutexLock lock(&mu_);
  woken_ = false;
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
    // Answers that have arrived.
    void* tag = nullptr;
    bool ok = false;
    while (queue_.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) ==
           grpc::CompletionQueue::GOT_EVENT) {
      Take(tag);
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
  if (driver_ == Driver::kOwnThread) {
    absl::MutexLock lock(&mu_);
    return AwaitFor(&mu_, absl::Condition(&news), timeout);
  }
  const auto until = DeadlineAfter(timeout);
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (HasNewsLocked()) return true;
    }
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, until) !=
        grpc::CompletionQueue::GOT_EVENT) {
      return false;
    }
    static_cast<Transfer*>(tag)->Proceed();
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
    active_.insert(transfer);
    ledger_.Add();
    if (driver_ == Driver::kOwnThread) {
      added_.push_back(transfer);
      if (std::exchange(woken_, true)) return;
    }
  }
  if (driver_ == Driver::kOwnThread) {
    wake_.Set(&queue_, DeadlineAfter(absl::ZeroDuration()), nullptr);
  } else {
    transfer->Send();
  }
}

std::optional<absl::Duration> TransferRound::After(Transfer* transfer,
                                                   const absl::Status& status,
                                                   int failures) {
  absl::MutexLock lock(&mu_);
  const bool failed = !ledger_.status().ok();
  const std::optional<absl::Duration> pause =
      ledger_.After(status, transfer->what(), failures,
                    Jitter(failures, transfer), SteadyNow());
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
  if (on_waiting_) on_waiting_(wait);
}

void Transfer::Start(TransferRound* round, grpc::GenericStub* stub, Work work) {
  round->Add(new Transfer(round, stub, std::move(work)));
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
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(DeadlineAfter(hold + kPolicy.margin));
  round_->proof().AddTo(context.get());
  state_ = State::kCalling;
  reader_ = stub_->PrepareUnaryCall(
      context.get(), work_.method,
      work_.request(static_cast<uint32_t>(absl::ToInt64Milliseconds(hold))),
      round_->queue());
  {
    absl::MutexLock lock(&mu_);
    context_ = std::move(context);
    called_ = std::min(called_, SteadyNow());
  }
  reader_->StartCall();
  reader_->Finish(&response_, &status_, this);
}

void Transfer::Cancel() {
  absl::MutexLock lock(&mu_);
  if (context_) context_->TryCancel();
}

std::string Transfer::Silence() const {
  absl::MutexLock lock(&mu_);
  const absl::Duration silent = SteadyNow() - called_;
  if (!kPolicy.IsSilent(silent)) return "";
  return absl::StrCat("an answer to the ", work_.what, " for ",
                      absl::ToInt64Seconds(silent), " s");
}

void Transfer::Proceed() {
  if (state_ == State::kCalling) {
    absl::MutexLock lock(&mu_);
    // An early DEADLINE_EXCEEDED is the server's answer; one of a silent server
    // is this client's own deadline.
    const bool answered =
        status_.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED ||
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
  RetryOrEnd(status_.ok() ? work_.receive(response_) : ToAbslStatus(status_));
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
  alarm_.Set(round_->queue(), DeadlineAfter(absl::Microseconds(micros)), this);
}

}  // namespace tributary
