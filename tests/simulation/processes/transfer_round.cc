#include "tests/simulation/processes/transfer_round.h"

#include <algorithm>
#include <utility>

#include "common/base/mutation.h"
#include "common/wire/retry_policy.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

constexpr RetryPolicy kPolicy;

}  // namespace

void TransferRound::Begin(int64_t timeout_micros) {
  ++round_;
  deadline_ = context_->world.now() + timeout_micros;
  active_ = calling_ = 0;
  status_ = absl::OkStatus();
  done_ = nullptr;
}

void TransferRound::After(int64_t micros, std::function<void()> then) {
  context_->world.After(micros, process_, World::Kind::kWork,
                        [this, mine = round_, then = std::move(then)] {
                          if (mine == round_) then();
                        });
}

void TransferRound::Add(int64_t delay_micros, Attempt attempt) {
  ++active_;
  After(delay_micros,
        [this, attempt = std::move(attempt)] { Try(attempt, 0); });
}

void TransferRound::Try(Attempt attempt, int attempts) {
  const absl::Duration hold = kPolicy.HoldFor(Left());
  ++calling_;
  attempt(absl::ToInt64Microseconds(hold),
          absl::ToInt64Microseconds(hold + kPolicy.margin),
          [this, mine = round_, attempt, attempts](const absl::Status& status) {
            if (mine != round_ && !TRIBUTARY_MUTATED("late-reply-accepted")) {
              return;
            }
            --calling_;
            Outcome(attempt, attempts, status);
          });
}

void TransferRound::Outcome(const Attempt& attempt, int attempts,
                            const absl::Status& status) {
  if (status.ok()) return End(status);
  switch (RetryPolicy::After(status, Left())) {
    case RetryPolicy::Next::kFail:
      return End(status);
    case RetryPolicy::Next::kGiveUp:
      return End(absl::DeadlineExceededError(status.message()));
    case RetryPolicy::Next::kRetry:
      break;
  }
  const double jitter =
      static_cast<double>(context_->world.random().Between(0, kSecond)) /
      kSecond;
  After(absl::ToInt64Microseconds(kPolicy.Pause(attempts, jitter)),
        [this, attempt, attempts] { Try(attempt, attempts + 1); });
}

absl::Duration TransferRound::Left() const {
  return absl::Microseconds(deadline_ - context_->world.now());
}

void TransferRound::End(const absl::Status& status) {
  --active_;
  status_.Update(status);
  if (!status_.ok() || active_ == 0) Wait(std::exchange(done_, nullptr));
}

void TransferRound::Wait(std::function<void(absl::Status)> done) {
  if (!done) return;
  if (status_.ok() && active_ > 0) {
    done_ = std::move(done);
    return;
  }
  ++round_;  // cancels the other transfers
  active_ = calling_ = 0;
  done(status_);
}

void TransferRound::Cancel(const std::string& why) {
  status_.Update(absl::CancelledError(why));
  Wait(std::exchange(done_, nullptr));
}

}  // namespace tributary::simulation
