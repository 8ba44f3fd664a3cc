// Steps of a ParameterShard that need sums over the whole gradient before any
// block may be updated: the norm that clips, and LAMB's trust ratios.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/mutation.h"
#include "common/status/status_macros.h"
#include "kernels/ops.h"
#include "server/store/parameter_shard.h"
#include "server/store/rejection.h"
#include "server/store/update_timer.h"

namespace tributary {

void ParameterShard::OfferStatistics(int64_t step, StatisticsKind kind,
                                     int block,
                                     const std::vector<double>& values) {
  bool local = false;
  bool complete = false;
  {
    absl::MutexLock lock(&exchange_mu_);
    local = exchange_.AddBlock(step, kind, block, values);
    complete = local && exchange_.Complete(step, kind);
  }
  if (!local) return;
  AnswerStatistics();
  if (complete) {
    ContinueStep(step, kind);
  } else if (options_.plan->num_shards() > 1) {
    options_.fetch_statistics(step, kind);
  }
}

absl::Status ParameterShard::AddStatistics(int64_t step, StatisticsKind kind,
                                           int shard,
                                           std::vector<double> values) {
  bool complete = false;
  {
    absl::MutexLock lock(&exchange_mu_);
    TRIBUTARY_RETURN_IF_ERROR(
        exchange_.AddShard(step, kind, shard, std::move(values), &complete));
  }
  if (complete) ContinueStep(step, kind);
  return absl::OkStatus();
}

void ParameterShard::ContinueStep(int64_t step, StatisticsKind kind) {
  std::vector<std::vector<double>> sums;
  {
    absl::MutexLock lock(&exchange_mu_);
    sums = exchange_.PerParameter(step, kind);
    exchange_.ForgetBefore(step - 1);
  }
  const ParameterSpecs& parameters = options_.plan->parameters();
  if (kind == StatisticsKind::kTrustRatio) {
    const std::vector<double> rates = phases_.DirectionRates(
        parameters, training_.learning_rate(step), sums[0], sums[1]);
    return ApplyEverywhere(step, /*gradient_scale=*/1.0, &rates);
  }
  if (phases_.skips_nonfinite() && UpdatePhases::FirstNonFinite(sums[0]) >= 0) {
    return SkipEverywhere();
  }
  const double scale = phases_.Scale(parameters, sums[0]);
  if (phases_.needs_trust_ratio()) {
    StartTrustRatio(step, scale);
  } else {
    ApplyEverywhere(step, scale, nullptr);
  }
}

void ParameterShard::StartTrustRatio(int64_t step, double gradient_scale) {
  const OptimizerStep prepared = phases_.optimizer().Prepare(
      step + 1, training_.learning_rate(step), gradient_scale);
  for (auto& block : blocks_) {
    std::vector<double> values;
    {
      absl::MutexLock lock(&block->mu);
      const UpdateTimer timer(options_.clock, &counters_);
      values = block->Direction(*options_.ops, prepared);
    }
    OfferStatistics(step, StatisticsKind::kTrustRatio, block->block().index,
                    values);
  }
}

void ParameterShard::ApplyEverywhere(
    int64_t step, double gradient_scale,
    const std::vector<double>* direction_rates) {
  const OptimizerStep prepared = phases_.optimizer().Prepare(
      step + 1, training_.learning_rate(step), gradient_scale);
  for (auto& block : blocks_) {
    std::vector<BlockState::Ready> ready;
    {
      absl::MutexLock lock(&block->mu);
      {
        const UpdateTimer timer(options_.clock, &counters_);
        if (direction_rates != nullptr) {
          block->ApplyDirection(*options_.ops, *direction_rates);
        } else {
          block->ApplyAveraged(*options_.ops, prepared);
        }
      }
      CutLocked(*block);
      if (!TRIBUTARY_MUTATED("no-wake-after-clipped-step")) {
        block->TakeAnswered(&counters_, &ready);
      }
    }
    RunAll(ready);
  }
}

void ParameterShard::SkipEverywhere() {
  for (auto& block : blocks_) {
    std::vector<BlockState::Ready> ready;
    {
      absl::MutexLock lock(&block->mu);
      block->Skip();
      ++counters_.skipped_blocks;
      CutLocked(*block);
      block->TakeAnswered(&counters_, &ready);
    }
    RunAll(ready);
  }
}

void ParameterShard::ReadStatistics(int64_t step, StatisticsKind kind,
                                    int64_t deadline_micros,
                                    StatisticsDone done) {
  absl::StatusOr<std::vector<double>> answer =
      absl::OutOfRangeError("not answered");
  {
    absl::MutexLock lock(&exchange_mu_);
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
    } else if (statistics_waiters_.size() >= kMaxStatisticsWaiters) {
      answer = Reject(Rejection::kOverload,
                      absl::ResourceExhaustedError(absl::StrCat(
                          statistics_waiters_.size(),
                          " calls wait for statistics of shard ",
                          options_.shard, ", no more may; try again")));
    } else {
      statistics_waiters_.push_back(
          {step, kind, deadline_micros, std::move(done)});
      return;
    }
  }
  done(std::move(answer));
}

void ParameterShard::AnswerStatistics() {
  std::vector<std::pair<StatisticsDone, std::vector<double>>> ready;
  {
    absl::MutexLock lock(&exchange_mu_);
    std::vector<StatisticsWaiter> still;
    for (StatisticsWaiter& waiter : statistics_waiters_) {
      if (auto local = exchange_.Local(waiter.step, waiter.kind)) {
        ready.emplace_back(std::move(waiter.done), *std::move(local));
      } else {
        still.push_back(std::move(waiter));
      }
    }
    statistics_waiters_ = std::move(still);
  }
  for (auto& [done, values] : ready) done(std::move(values));
}

}  // namespace tributary
