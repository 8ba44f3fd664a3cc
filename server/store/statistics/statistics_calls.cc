// SPDX-License-Identifier: Apache-2.0
#include "server/store/statistics/statistics_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/status/status_macros.h"
#include "server/store/rejection.h"

namespace tributary {

StatisticsCalls::Complete StatisticsCalls::AddBlock(
    int64_t step, StatisticsKind kind, int block,
    const std::vector<double>& values) {
  Complete complete;
  {
    absl::MutexLock lock(&mu_);
    complete.local = exchange_.AddBlock(step, kind, block, values);
    complete.all = complete.local && exchange_.Complete(step, kind);
  }
  if (complete.local) AnswerWaiters();
  return complete;
}

absl::StatusOr<bool> StatisticsCalls::AddShard(int64_t step,
                                               StatisticsKind kind, int shard,
                                               std::vector<double> values) {
  bool complete = false;
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(
      exchange_.AddShard(step, kind, shard, std::move(values), &complete));
  return complete;
}

std::vector<std::vector<double>> StatisticsCalls::Sums(int64_t step,
                                                       StatisticsKind kind) {
  absl::MutexLock lock(&mu_);
  std::vector<std::vector<double>> sums = exchange_.PerParameter(step, kind);
  exchange_.ForgetBefore(step - 1);
  return sums;
}

std::vector<std::vector<double>> StatisticsCalls::FactorTotals(int64_t step) {
  absl::MutexLock lock(&mu_);
  return exchange_.FactorTotals(step);
}

void StatisticsCalls::ForgetBefore(int64_t step) {
  absl::MutexLock lock(&mu_);
  exchange_.ForgetBefore(step);
}

std::vector<int> StatisticsCalls::MissingShards() const {
  absl::MutexLock lock(&mu_);
  return exchange_.MissingShards();
}

void StatisticsCalls::Read(int64_t step, StatisticsKind kind,
                           int64_t deadline_micros, StatisticsDone done) {
  absl::StatusOr<std::vector<double>> answer =
      absl::OutOfRangeError("not answered");
  {
    absl::MutexLock lock(&mu_);
    if (step < exchange_.oldest_step()) {
      answer =
          absl::OutOfRangeError(absl::StrCat("statistics of step ", step + 1,
                                             " are forgotten; the "
                                             "oldest kept are of step ",
                                             exchange_.oldest_step() + 1));
    } else if (auto local = exchange_.Local(step, kind)) {
      answer = *std::move(local);
    } else if (step >= kMaxStep) {
      answer = Reject(Rejection::kStep, absl::InvalidArgumentError(absl::StrCat(
                                            "statistics of step ", step,
                                            ", wanted below ", kMaxStep)));
    } else if (waiters_.size() >= kMaxWaiters) {
      answer =
          Reject(Rejection::kOverload,
                 absl::ResourceExhaustedError(absl::StrCat(
                     waiters_.size(), " calls wait for statistics of shard ",
                     shard_, ", no more may; try again")));
    } else {
      waiters_.push_back({step, kind, deadline_micros, std::move(done)});
      return;
    }
  }
  done(std::move(answer));
}

void StatisticsCalls::AnswerWaiters() {
  std::vector<std::pair<StatisticsDone, std::vector<double>>> ready;
  {
    absl::MutexLock lock(&mu_);
    std::vector<Waiter> still;
    for (Waiter& waiter : waiters_) {
      if (auto local = exchange_.Local(waiter.step, waiter.kind)) {
        ready.emplace_back(std::move(waiter.done), *std::move(local));
      } else {
        still.push_back(std::move(waiter));
      }
    }
    waiters_ = std::move(still);
  }
  for (auto& [done, values] : ready) done(std::move(values));
}

void StatisticsCalls::TakeExpired(int64_t now_micros,
                                  std::vector<BlockState::Ready>* ready) {
  absl::MutexLock lock(&mu_);
  auto waits = [now_micros](const Waiter& w) {
    return w.deadline_micros > now_micros;
  };
  auto first = std::stable_partition(waiters_.begin(), waiters_.end(), waits);
  for (auto it = first; it != waiters_.end(); ++it) {
    const absl::Status status = absl::DeadlineExceededError(absl::StrCat(
        "step ", it->step + 1, " of shard ", shard_, " is not complete yet"));
    ready->push_back([done = std::move(it->done), status] { done(status); });
  }
  waiters_.erase(first, waiters_.end());
}

}  // namespace tributary
