// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/transfer.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/status/cause.h"
#include "common/wire/retry_policy.h"
#include "worker/rank/client/transfer/transfer_ledger.h"

namespace tributary {
namespace {

constexpr RetryPolicy kPolicy = TransferLedger::kPolicy;

}  // namespace

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
    call_ = round_->calls(work_.shard)
                .Start(work_.shard, work_.method, request,
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
  alarm_ =
      round_->calls(work_.shard).SetAlarm(absl::Microseconds(micros), this);
}

}  // namespace tributary
