// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/transfer_ledger.h"

#include "absl/strings/str_cat.h"
#include "common/status/cause.h"

namespace tributary {

void TransferLedger::Begin(absl::Duration now, absl::Duration timeout) {
  deadline_ = now + timeout;
  open_ = 0;
  status_ = absl::OkStatus();
}

std::optional<absl::Duration> TransferLedger::After(const absl::Status& status,
                                                    const std::string& what,
                                                    int failures, double jitter,
                                                    absl::Duration now) {
  absl::Status end = status;
  if (!status.ok()) {
    const std::string text = absl::StrCat(what, ": ", status.message());
    const RetryPolicy::Next next = RetryPolicy::After(status, deadline_ - now);
    if (next == RetryPolicy::Next::kRetry && !stopped()) {
      return kPolicy.Pause(failures, jitter);
    }
    end = !cancelled_.empty() ? absl::CancelledError(cancelled_)
          : next == RetryPolicy::Next::kGiveUp
              ? absl::DeadlineExceededError(absl::StrCat(
                    text, " (gave up after ", failures + 1, " attempts)"))
              : WithMessage(status, text);
  }
  --open_;
  status_.Update(end);
  return std::nullopt;
}

}  // namespace tributary
