// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/store/block_state.h"
#include "server/store/statistics/statistics_exchange.h"

namespace tributary {

using StatisticsDone = std::function<void(absl::StatusOr<std::vector<double>>)>;

// A StatisticsExchange with its lock, and the calls of other shards that wait
// for this shard's sums. Callbacks run outside the lock.
class StatisticsCalls {
 public:
  // Limit of waiting calls. In a job with the most servers, each of them asks
  // for two sums, and asks again when its connection broke.
  static constexpr size_t kMaxWaiters = 1024;

  StatisticsCalls(const PartitionPlan& plan, int shard,
                  const Optimizer& optimizer)
      : shard_(shard), exchange_(plan, shard, optimizer) {}

  // Which sums of a step are complete: this shard's, and those of all shards.
  struct Complete {
    bool local = false;
    bool all = false;
  };
  // Adds a block's values, and answers the waiting calls when they complete
  // this shard's sums.
  Complete AddBlock(int64_t step, StatisticsKind kind, int block,
                    const std::vector<double>& values);
  // Adds another shard's sums; true when these were the last that were missing.
  // InvalidArgument when their number is wrong.
  absl::StatusOr<bool> AddShard(int64_t step, StatisticsKind kind, int shard,
                                std::vector<double> values);
  // Returns StatisticsExchange::PerParameter, for which the sums must be
  // complete, and drops the sums of steps before step - 1.
  std::vector<std::vector<double>> Sums(int64_t step, StatisticsKind kind);
  std::vector<std::vector<double>> FactorTotals(int64_t step);
  void ForgetBefore(int64_t step);
  std::vector<int> MissingShards() const;

  // Gives this shard's sums to `done` as soon as they are complete.
  void Read(int64_t step, StatisticsKind kind, int64_t deadline_micros,
            StatisticsDone done);
  // Removes the calls whose deadline has passed and appends their answers.
  void TakeExpired(int64_t now_micros, std::vector<BlockState::Ready>* ready);

 private:
  struct Waiter {
    int64_t step;
    StatisticsKind kind;
    int64_t deadline_micros;
    StatisticsDone done;
  };
  void AnswerWaiters();

  const int shard_;
  mutable absl::Mutex mu_;  // never held together with a block's
  StatisticsExchange exchange_ ABSL_GUARDED_BY(mu_);
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
