// SPDX-License-Identifier: Apache-2.0
#include "server/store/parameter_shard.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/limits.h"
#include "common/base/mutation.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/payload.h"
#include "kernels/ops.h"
#include "server/aggregate/gradient_reader.h"
#include "server/store/contribution_checks.h"
#include "server/store/contribution_trace.h"
#include "server/store/rejection.h"
#include "server/store/update_timer.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

Contribution WithoutPayload(const Contribution& c) {
  return {.rank = c.rank,
          .incarnation = c.incarnation,
          .step = c.step,
          .samples = c.samples,
          .total_samples = c.total_samples,
          .crc32c = c.crc32c,
          .base_version = c.base_version,
          .learning_rates = c.learning_rates};
}

}  // namespace

absl::Status ParameterShard::Refuse(absl::Status status) {
  ++blocks_.counters().rejected;
  return status;
}

absl::Status ParameterShard::CheckContribution(const BlockState& block,
                                               Contribution* contribution) {
  Contribution& c = *contribution;
  TRIBUTARY_RETURN_IF_ERROR(CheckNumbers(blocks_, block.block(), c));
  // Checked before the scan: few bytes of a message can name much memory.
  if (c.in_shared_memory) {
    TRIBUTARY_RETURN_IF_ERROR(CheckSize(block.block(), c));
  }
  const GradientScan scan =
      ScanGradient(block.block(), c.payload, block.frozen_slices());
  if (c.in_shared_memory) c.crc32c = scan.crc32c;
  // Checked before the size: a damaged frame can have lost its payload field.
  if (scan.crc32c != c.crc32c && !TRIBUTARY_MUTATED("gradient-unchecked")) {
    return Reject(Rejection::kChecksum,
                  absl::DataLossError(absl::StrCat(
                      "payload of rank ", c.rank, ", step ", c.step,
                      " was damaged on the way: crc32c ", scan.crc32c,
                      ", sent as ", c.crc32c, "; send it again")));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckSize(block.block(), c));
  if (scan.first_malformed >= 0) {
    return Malformed(block.block(), c, scan.first_malformed);
  }
  if (scan.first_nonfinite < 0) return absl::OkStatus();
  return NotFinite(block.block(), c, scan.first_nonfinite);
}

std::string ParameterShard::PlaceOf(const Block& block, int64_t at) const {
  auto slice = block.slices.begin();
  while (at >= slice->offset + slice->size()) ++slice;
  return absl::StrCat("\"", options().plan->parameters()[slice->parameter].name,
                      "\", element ", slice->begin + at - slice->offset);
}

absl::Status ParameterShard::Malformed(const Block& block,
                                       const Contribution& c, int64_t at) {
  return Reject(
      Rejection::kMalformed,
      absl::InvalidArgumentError(absl::StrCat(
          "the gradient of rank ", c.rank, " for step ", c.step + 1,
          " cannot be decoded from ", PlaceOf(block, at),
          " on; wanted indices in ascending order within their unit")));
}

absl::Status ParameterShard::NotFinite(const Block& block,
                                       const Contribution& c, int64_t at) {
  const uint64_t count = ++blocks_.counters().nonfinite;
  const std::string why =
      absl::StrCat("the gradient of rank ", c.rank, " for step ", c.step + 1,
                   " is not finite in ", PlaceOf(block, at));
  if (options().training.nonfinite == NonFiniteAction::kSkip) {
    if (std::has_single_bit(count)) {  // at powers of two: ever more rarely
      spdlog::warn("{}; the step changes nothing ({} such gradients so far)",
                   why, count);
    }
    return absl::OkStatus();
  }
  const absl::Status error =
      WithCause(absl::InvalidArgumentError(why), v1::CAUSE_DIVERGENCE);
  if (options().training.nonfinite == NonFiniteAction::kFail &&
      options().callbacks.on_fatal) {
    options().callbacks.on_fatal(error);
  }
  return Reject(Rejection::kNonfinite, error);
}

absl::Status ParameterShard::Verdict(BlockState& block,
                                     const Contribution& sent,
                                     GradientAggregator::Verdict verdict) {
  const GradientAggregator& aggregator = block.aggregator();
  switch (verdict) {
    case GradientAggregator::Verdict::kAdded:
      ++blocks_.counters().contributions;
      return absl::OkStatus();
    case GradientAggregator::Verdict::kHeld:
    case GradientAggregator::Verdict::kCommitted:
      ++blocks_.counters().duplicates;
      return absl::OkStatus();
    case GradientAggregator::Verdict::kLate:
      ++blocks_.counters().dropped;
      return absl::OkStatus();
    case GradientAggregator::Verdict::kConflict:
      ++blocks_.counters().conflicts;
      return absl::AbortedError(
          absl::StrCat("rank ", sent.rank,
                       " sent other bytes, samples or learning rates for step ",
                       sent.step + 1, " than before: it is not deterministic"));
    case GradientAggregator::Verdict::kFenced:
      return FencedError(sent.rank);
    case GradientAggregator::Verdict::kWrongTotal:
      return WrongTotal(aggregator, sent);
    case GradientAggregator::Verdict::kWrongRates:
      return WrongRates(aggregator, sent);
    case GradientAggregator::Verdict::kTooOld:
    case GradientAggregator::Verdict::kTooNew:
      break;
  }
  return Reject(Rejection::kStep,
                absl::OutOfRangeError(absl::StrCat(
                    "rank ", sent.rank, " sent step ", sent.step + 1,
                    " of block ", block.block().index, ", the open step is ",
                    aggregator.wanted_step(static_cast<int>(sent.rank)) + 1)));
}

void ParameterShard::PushPull(int index, Contribution contribution,
                              int64_t deadline_micros,
                              const WeightsDone& done) {
  BlockState& block = this->block(index);
  ContributionTrace trace(options().trace, block.block(), contribution);
  absl::Status status = CheckContribution(block, &contribution);
  if (!status.ok()) return done(Refuse(std::move(status)));
  trace.Checked();
  const Contribution sent = WithoutPayload(contribution);
  const int64_t step = sent.step;
  std::vector<BlockState::Ready> ready;
  std::vector<double> statistics;
  {
    absl::MutexLock lock(&block.mu);
    GradientAggregator& aggregator = block.aggregator();
    if (block.version() == BlockState::kUninitialized) {
      status =
          Reject(Rejection::kUninitialized,
                 absl::FailedPreconditionError("weights are not initialized"));
    } else {
      const auto verdict = aggregator.Add(std::move(contribution));
      status = Verdict(block, sent, verdict);
      if (status.ok()) {
        status = block.Wait({BlockState::Want::kFinished,
                             step + (TRIBUTARY_MUTATED("early-answer") ? 0 : 1),
                             deadline_micros, trace.Answering(done)});
      }
      if (verdict == GradientAggregator::Verdict::kAdded &&
          options().training.policy->MayApply(aggregator.contributed(), step)) {
        TRIBUTARY_FAILPOINT("server-complete");
        const TraceScope updating =
            trace.Updating(blocks_.phases().needs_sums() ? TraceKind::kAverage
                                                         : TraceKind::kUpdate,
                           options().training.policy->gathers());
        CompleteBlockLocked(block, sent.base_version, &statistics);
      } else if (verdict == GradientAggregator::Verdict::kAdded &&
                 block.gradient().HasGroup()) {
        const UpdateTimer timer(options().clock, &blocks_.counters());
        block.gradient().AddArrived(*options().ops);
      } else if (TRIBUTARY_MUTATED("no-wake-after-push")) {
        return;
      }
      block.TakeAnswered(&blocks_.counters(), &ready);
    }
  }
  if (!status.ok()) done(Refuse(std::move(status)));
  RunAll(ready);
  if (!statistics.empty()) two_phase_.Offer(step, index, statistics);
}

void ParameterShard::CompleteBlockLocked(BlockState& block,
                                         int64_t base_version,
                                         std::vector<double>* statistics) {
  const int64_t version = block.version();
  LearningRates rates = blocks_.RatesLocked(block);
  if (blocks_.training().scale_by_staleness) {
    const auto updates =
        static_cast<double>(std::max<int64_t>(1, version - base_version));
    for (double& rate : rates) rate /= updates;
  }
  const UpdatePhases& phases = blocks_.phases();
  const OptimizerSteps prepared =
      phases.optimizer().Prepare(block.open_update(), rates,
                                 /*gradient_scale=*/1.0);
  if (phases.needs_sums()) {
    *statistics = two_phase_.BeginLocked(block, prepared);
    return;
  }
  {
    const UpdateTimer timer(options().clock, &blocks_.counters());
    block.ApplyFused(prepared);
  }
  blocks_.CutIfDueLocked(block);
}

void ParameterShard::Ask(int index, BlockState::Waiter waiter) {
  BlockState& block = this->block(index);
  std::vector<BlockState::Ready> ready;
  const WeightsDone done = waiter.done;
  absl::Status status;
  {
    absl::MutexLock lock(&block.mu);
    status = block.Wait(std::move(waiter));
    block.TakeAnswered(&blocks_.counters(), &ready);
  }
  if (!status.ok()) done(Refuse(std::move(status)));
  RunAll(ready);
}

void ParameterShard::Pull(int block, int64_t min_version,
                          int64_t deadline_micros, WeightsDone done) {
  Ask(block, {BlockState::Want::kVersion, min_version, deadline_micros,
              std::move(done)});
}

void ParameterShard::PullExact(int block, int64_t version,
                               int64_t deadline_micros, WeightsDone done) {
  Ask(block,
      {BlockState::Want::kExact, version, deadline_micros, std::move(done)});
}

void ParameterShard::PullFinished(int block, int64_t finished,
                                  int64_t deadline_micros, WeightsDone done) {
  if (finished < 0 || finished >= kMaxStep) {
    done(Refuse(Reject(
        Rejection::kStep,
        absl::InvalidArgumentError(absl::StrCat(
            "a pull after ", finished,
            " finished steps, wanted 0 or more and below ", kMaxStep)))));
    return;
  }
  Ask(block, {BlockState::Want::kFinished, finished, deadline_micros,
              std::move(done)});
}

absl::Status ParameterShard::Restore(int64_t steps, int64_t skipped_steps,
                                     const LoadBlock& load) {
  const int64_t contributions = steps / blocks_.count().steps_an_update;
  two_phase_.calls().ForgetBefore(contributions);
  return blocks_.Restore(contributions, skipped_steps, load);
}

absl::Status ParameterShard::Initialize(int index, uint32_t crc32c,
                                        const Payload& payload) {
  BlockState& block = this->block(index);
  const Payload::Scan scan = payload.ScanFloats();
  if (scan.crc32c != crc32c) {
    return Refuse(Reject(
        Rejection::kChecksum,
        absl::DataLossError(
            "initial weights were damaged on the way; send them again")));
  }
  if (payload.size() != static_cast<size_t>(block.block().bytes())) {
    return Refuse(
        Reject(Rejection::kShape,
               absl::InvalidArgumentError(absl::StrCat(
                   "initial weights of ", payload.size(), " bytes for block ",
                   index, " of shard ", options().shard, ", wanted ",
                   block.block().bytes()))));
  }
  if (scan.first_nonfinite >= 0) {
    return Refuse(Reject(
        Rejection::kNonfinite,
        absl::InvalidArgumentError(absl::StrCat(
            "initial weights of block ", index, " of shard ", options().shard,
            " are not finite at element ", scan.first_nonfinite))));
  }
  std::vector<BlockState::Ready> ready;
  {
    absl::MutexLock lock(&block.mu);
    if (block.version() == BlockState::kUninitialized) {
      block.SetWeights(payload, crc32c);
      if (!TRIBUTARY_MUTATED("no-wake-after-first-weights")) {
        block.TakeAnswered(&blocks_.counters(), &ready);
      }
    } else if (!block.BeganWith(crc32c)) {  // else: a late repetition
      return Refuse(
          Reject(Rejection::kInitialized,
                 absl::AlreadyExistsError(absl::StrCat(
                     "block ", index, " of shard ", options().shard,
                     " has other weights, of version ", block.version()))));
    }
  }
  RunAll(ready);
  return absl::OkStatus();
}

void ParameterShard::ExpireWaiters(int64_t now_micros) {
  std::vector<BlockState::Ready> ready;
  const std::vector<int> missing_shards = two_phase_.calls().MissingShards();
  for (const auto& block : blocks_.blocks()) {
    absl::MutexLock lock(&block->mu);
    block->TakeExpired(now_micros, missing_shards, &ready);
  }
  two_phase_.calls().TakeExpired(now_micros, &ready);
  RunAll(ready);
}

}  // namespace tributary
