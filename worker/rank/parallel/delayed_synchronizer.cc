// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/delayed_synchronizer.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/mutation.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {
namespace {

using Place = ExchangeMemory::Place;

}  // namespace

DelayedSynchronizer::DelayedSynchronizer(Options options)
    : memory_(std::move(options.memory)),
      ops_(options.ops),
      exchange_(std::move(options.exchange)) {}

DelayedSynchronizer::~DelayedSynchronizer() {
  if (!exchanging_) return;
  exchange_->Cancel("the plan is over");
  (void)exchange_->FinishStep();
}

absl::StatusOr<int64_t> DelayedSynchronizer::Start(
    const MakeWeights& initial, const OnProgress& on_progress) {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t finished,
                             exchange_->Start(initial, on_progress));
  memory_->CopyWeights(Place::kExchange, Place::kModel);
  if (finished > 0 && !TRIBUTARY_MUTATED("newest-weights-at-start")) {
    // The next step is computed at the weights before the last finished step.
    // The next FinishStep hands out the newest weights.
    memory_->CopyWeights(Place::kExchange, Place::kAside);
    TRIBUTARY_RETURN_IF_ERROR(exchange_->LoadVersion(finished - 1));
    memory_->CopyWeights(Place::kExchange, Place::kModel);
    memory_->CopyWeights(Place::kAside, Place::kExchange);
  }
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
  return finished;
}

void DelayedSynchronizer::BeginStep(int64_t step, uint64_t samples) {
  step_ = step;
  samples_ = samples;
}

absl::StatusOr<int64_t> DelayedSynchronizer::FinishStep() {
  TRIBUTARY_RETURN_IF_ERROR(Settle());
  memory_->CopyWeights(Place::kExchange, Place::kModel);
  if (samples_ > 0) memory_->TakeGradients();
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
  exchange_->BeginStep(step_, samples_);
  exchanging_ = true;
  for (int p = static_cast<int>(memory_->parameters().size()); p-- > 0;) {
    exchange_->GradientReady(p);
  }
  return step_ + 1;
}

absl::Status DelayedSynchronizer::Settle() {
  if (!std::exchange(exchanging_, false)) return failed_;
  failed_ = exchange_->FinishStep().status();
  spans_ = exchange_->spans();
  return failed_;
}

absl::Status DelayedSynchronizer::ShowNewest() {
  TRIBUTARY_RETURN_IF_ERROR(Settle());
  memory_->CopyWeights(Place::kModel, Place::kAside);
  memory_->CopyWeights(Place::kExchange, Place::kModel);
  return SynchronizeDevice(*ops_);
}

absl::Status DelayedSynchronizer::HideNewest() {
  memory_->CopyWeights(Place::kAside, Place::kModel);
  return SynchronizeDevice(*ops_);
}

absl::Status DelayedSynchronizer::Checkpoint(int64_t step, bool best) {
  TRIBUTARY_RETURN_IF_ERROR(Settle());
  return exchange_->Checkpoint(step, best);
}

absl::Status DelayedSynchronizer::End(int64_t step) {
  TRIBUTARY_RETURN_IF_ERROR(Settle());
  memory_->CopyWeights(Place::kExchange, Place::kModel);
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
  return exchange_->End(step);
}

}  // namespace tributary
