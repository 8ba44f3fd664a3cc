// SPDX-License-Identifier: Apache-2.0
#include "server/store/two_phase_steps.h"

#include <utility>

#include "common/base/mutation.h"
#include "common/status/status_macros.h"
#include "kernels/ops.h"
#include "server/store/update_timer.h"

namespace tributary {

std::vector<double> TwoPhaseSteps::BeginLocked(BlockState& block,
                                               const OptimizerSteps& prepared) {
  Ops& ops = *shard_.options().ops;
  const UpdateTimer timer(shard_.options().clock, &shard_.counters());
  block.Average(ops);
  return shard_.phases().needs_norm() ? block.GradientSquares(ops)
                                      : block.Direction(ops, prepared);
}

void TwoPhaseSteps::Offer(int64_t step, int block,
                          const std::vector<double>& values) {
  Offer(step,
        shard_.phases().needs_norm() ? StatisticsKind::kGradientNorm
                                     : StatisticsKind::kTrustRatio,
        block, values);
}

void TwoPhaseSteps::Offer(int64_t step, StatisticsKind kind, int block,
                          const std::vector<double>& values) {
  const StatisticsCalls::Complete complete =
      calls_.AddBlock(step, kind, block, values);
  if (complete.all) {
    Continue(step, kind);
  } else if (complete.local && shard_.options().plan->num_shards() > 1) {
    shard_.options().callbacks.fetch_statistics(step, kind);
  }
}

absl::Status TwoPhaseSteps::AddStatistics(int64_t step, StatisticsKind kind,
                                          int shard,
                                          std::vector<double> values) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const bool complete,
      calls_.AddShard(step, kind, shard, std::move(values)));
  if (complete) Continue(step, kind);
  return absl::OkStatus();
}

void TwoPhaseSteps::Continue(int64_t step, StatisticsKind kind) {
  const UpdatePhases& phases = shard_.phases();
  const ParameterSpecs& parameters = shard_.options().plan->parameters();
  if (kind == StatisticsKind::kTrustRatio) {
    const auto sums = calls_.Sums(step, kind);
    return ApplyEverywhere(step, /*gradient_scale=*/1.0, &sums);
  }
  const std::vector<double> squares =
      calls_.Sums(step, StatisticsKind::kGradientNorm)[0];
  const double scale = phases.Scale(parameters, squares);
  if (kind == StatisticsKind::kFactors) {
    const auto totals = calls_.FactorTotals(step);
    return MakeDirections(step, scale, &totals);
  }
  if (phases.skips_nonfinite() && UpdatePhases::FirstNonFinite(squares) >= 0) {
    return SkipEverywhere();
  }
  if (phases.needs_factors()) {
    OfferFactors(step, scale, squares);
  } else if (phases.makes_directions()) {
    MakeDirections(step, scale, nullptr);
  } else {
    ApplyEverywhere(step, scale, nullptr);
  }
}

void TwoPhaseSteps::OfferFactors(int64_t step, double scale,
                                 std::vector<double> squares) {
  for (double& square : squares) square *= scale * scale;
  for (const auto& block : shard_.blocks()) {
    std::vector<double> sums;
    {
      absl::MutexLock lock(&block->mu);
      const UpdateTimer timer(shard_.options().clock, &shard_.counters());
      sums = block->FactorSums(*shard_.options().ops, static_cast<float>(scale),
                               squares);
    }
    Offer(step, StatisticsKind::kFactors, block->block().index, sums);
  }
}

void TwoPhaseSteps::MakeDirections(
    int64_t step, double gradient_scale,
    const std::vector<std::vector<double>>* factors) {
  for (const auto& block : shard_.blocks()) {
    std::vector<double> values;
    {
      absl::MutexLock lock(&block->mu);
      const UpdateTimer timer(shard_.options().clock, &shard_.counters());
      const OptimizerSteps prepared = shard_.phases().optimizer().Prepare(
          block->open_update(), shard_.RatesLocked(*block), gradient_scale);
      if (factors != nullptr) block->UpdateFactors(prepared, *factors);
      values = block->Direction(*shard_.options().ops, prepared);
    }
    Offer(step, StatisticsKind::kTrustRatio, block->block().index, values);
  }
}

void TwoPhaseSteps::ApplyEverywhere(
    int64_t step, double gradient_scale,
    const std::vector<std::vector<double>>* sums) {
  const UpdatePhases& phases = shard_.phases();
  LearningRates rates;
  OptimizerSteps prepared;
  std::vector<UpdatePhases::Move> moves;
  for (const auto& block : shard_.blocks()) {
    std::vector<BlockState::Ready> ready;
    {
      absl::MutexLock lock(&block->mu);
      // All blocks of a step usually have the same rates.
      if (LearningRates own = shard_.RatesLocked(*block); own != rates) {
        rates = std::move(own);
        const int64_t update = block->open_update();
        prepared = phases.optimizer().Prepare(update, rates, gradient_scale);
        if (sums != nullptr) {
          moves = phases.Moves(shard_.options().plan->parameters(), update,
                               rates, (*sums)[0], (*sums)[1]);
        }
      }
      {
        const UpdateTimer timer(shard_.options().clock, &shard_.counters());
        const TraceScope trace(shard_.options().trace,
                               {.kind = TraceKind::kUpdate,
                                .step = step,
                                .shard = block->block().shard,
                                .block = block->block().index});
        if (sums != nullptr) {
          block->ApplyDirection(*shard_.options().ops, moves);
        } else {
          block->ApplyAveraged(prepared);
        }
      }
      shard_.CutIfDueLocked(*block);
      if (!TRIBUTARY_MUTATED("no-wake-after-clipped-step")) {
        block->TakeAnswered(&shard_.counters(), &ready);
      }
    }
    RunAll(ready);
  }
}

void TwoPhaseSteps::SkipEverywhere() {
  for (const auto& block : shard_.blocks()) {
    std::vector<BlockState::Ready> ready;
    {
      absl::MutexLock lock(&block->mu);
      block->Skip();
      ++shard_.counters().skipped_blocks;
      shard_.CutIfDueLocked(*block);
      block->TakeAnswered(&shard_.counters(), &ready);
    }
    RunAll(ready);
  }
}

}  // namespace tributary
