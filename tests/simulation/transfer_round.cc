#include "tests/simulation/transfer_round.h"

#include <algorithm>
#include <utility>

#include "common/base/mutation.h"
#include "common/wire/repeatable.h"
#include "tests/simulation/micros.h"

namespace tributary::simulation {
namespace {

// As in worker/client/transfer.cc.
constexpr int64_t kHold = 2 * kSecond;
constexpr int64_t kMargin = 10 * kSecond;
constexpr int64_t kFirstBackoff = 10 * kMilli;
constexpr int64_t kMaxBackoff = kSecond;

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
  const int64_t hold =
      std::clamp(deadline_ - context_->world.now(), kMilli, kHold);
  ++calling_;
  attempt(hold, hold + kMargin,
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
  if (status.ok() || !Repeatable(status)) return End(status);
  if (context_->world.now() >= deadline_) {
    return End(absl::DeadlineExceededError(status.message()));
  }
  const int64_t base =
      std::min(kMaxBackoff, kFirstBackoff << std::min(attempts, 10));
  After(context_->world.random().Between(base / 2, base),
        [this, attempt, attempts] { Try(attempt, attempts + 1); });
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
