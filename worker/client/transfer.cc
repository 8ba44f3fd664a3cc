#include "worker/client/transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/retry_policy.h"

namespace tributary {
namespace {

constexpr RetryPolicy kPolicy;
// How often a round looks for silent servers.
constexpr absl::Duration kLook = absl::Milliseconds(250);

// Differs between transfers and attempts; from 0 to 1.
double Jitter(int failures, const void* salt) {
  const uint64_t hash = (reinterpret_cast<uintptr_t>(salt) + failures) *
                        uint64_t{0x9E3779B97F4A7C15};
  return static_cast<double>(hash >> 40) * 0x1p-24;
}

}  // namespace

void TransferRound::Begin(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  deadline_ = SteadyNow() + timeout;
  status_ = absl::OkStatus();
}

absl::Status TransferRound::Wait() {
  absl::MutexLock lock(&mu_);
  const absl::Condition ended(
      +[](std::set<Transfer*>* active) { return active->empty(); }, &active_);
  // Every transfer ends on its own soon after the deadline.
  while (!AwaitFor(&mu_, ended, kLook)) TellSilenceLocked();
  return status_;
}

void TransferRound::TellSilenceLocked() {
  for (const Transfer* transfer : active_) {
    const std::string silence = transfer->Silence();
    if (silence.empty()) continue;
    waiting_ = true;
    if (on_waiting_) on_waiting_(silence, transfer->shard());
    return;
  }
}

void TransferRound::Cancel(const std::string& why) {
  absl::MutexLock lock(&mu_);
  cancelled_ = why;
  for (Transfer* transfer : active_) transfer->Cancel();
}

bool TransferRound::Stopped() const {
  absl::MutexLock lock(&mu_);
  return !cancelled_.empty() || !status_.ok();
}

absl::Duration TransferRound::left() const {
  absl::MutexLock lock(&mu_);
  return deadline_ - SteadyNow();
}

void TransferRound::Add(Transfer* transfer) {
  absl::MutexLock lock(&mu_);
  active_.insert(transfer);
}

void TransferRound::Remove(Transfer* transfer, absl::Status status) {
  absl::MutexLock lock(&mu_);
  active_.erase(transfer);
  if (status.ok()) {
    if (std::exchange(waiting_, false) && on_waiting_) on_waiting_("", -1);
    return;
  }
  if (!cancelled_.empty()) status = absl::CancelledError(cancelled_);
  if (!status_.ok()) return;
  status_ = std::move(status);
  for (Transfer* other : active_) other->Cancel();  // the round has failed
}

void TransferRound::SetWaitingFor(const std::string& text, int silent_shard) {
  absl::MutexLock lock(&mu_);
  waiting_ = true;
  if (on_waiting_) on_waiting_(text, silent_shard);
}

void Transfer::Start(TransferRound* round, grpc::GenericStub* stub, Work work) {
  auto* transfer = new Transfer(round, stub, std::move(work));
  round->Add(transfer);
  transfer->Send();
}

void Transfer::Send() {
  if (const int64_t delay = round_->NextDelayMicros(); delay > 0) {
    SetAlarm(State::kDelayedSend, delay);
  } else {
    Call();
  }
}

void Transfer::Call() {
  if (round_->Stopped()) return End(absl::CancelledError("stopped"));
  const absl::Duration hold = kPolicy.HoldFor(round_->left());
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(DeadlineAfter(hold + kPolicy.margin));
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
  absl::Status status =
      status_.ok() ? work_.receive(response_) : ToAbslStatus(status_);
  if (status.ok()) {
    End(std::move(status));
  } else {
    RetryOrEnd(status);
  }
}

void Transfer::RetryOrEnd(const absl::Status& status) {
  const std::string text = absl::StrCat(work_.what, ": ", status.message());
  const RetryPolicy::Next next = RetryPolicy::After(status, round_->left());
  if (next == RetryPolicy::Next::kFail || round_->Stopped()) {
    return End(absl::Status(status.code(), text));
  }
  if (next == RetryPolicy::Next::kGiveUp) {
    return End(absl::DeadlineExceededError(
        absl::StrCat(text, " (gave up after ", attempts_ + 1, " attempts)")));
  }
  const std::string silence = Silence();
  if (!silence.empty()) {
    round_->SetWaitingFor(silence, work_.shard);
  } else if (absl::IsUnavailable(status)) {
    round_->SetWaitingFor(text, work_.shard);
  } else {
    round_->SetWaitingFor(std::string(status.message()), -1);
  }
  ++round_->retries;
  const absl::Duration pause =
      kPolicy.Pause(attempts_, Jitter(attempts_, this));
  ++attempts_;
  SetAlarm(State::kBackingOff, absl::ToInt64Microseconds(pause));
}

void Transfer::SetAlarm(State state, int64_t micros) {
  state_ = state;
  alarm_.Set(round_->queue(), DeadlineAfter(absl::Microseconds(micros)), this);
}

void Transfer::End(absl::Status status) {
  TransferRound* round = round_;
  // Removed last: after that the round's owner may go on and destroy the round.
  round->Remove(this, std::move(status));
  delete this;
}

}  // namespace tributary
