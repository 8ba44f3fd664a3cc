// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/local_sgd_synchronizer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {
namespace {

template <typename T>
std::vector<T*> Pointers(std::vector<std::vector<float>>& tensors) {
  std::vector<T*> pointers;
  for (std::vector<float>& tensor : tensors) pointers.push_back(tensor.data());
  return pointers;
}

}  // namespace

LocalSgdSynchronizer::LocalSgdSynchronizer(Options options)
    : options_(std::move(options)), bucketer_(options_.client->partition()) {
  for (const ParameterSpec& spec : options_.model->parameters()) {
    start_.emplace_back(spec.size());
    movement_.emplace_back(spec.size());
  }
}

absl::StatusOr<std::unique_ptr<LocalSgdSynchronizer>>
LocalSgdSynchronizer::Create(Options options) {
  std::unique_ptr<LocalSgdSynchronizer> made(
      new LocalSgdSynchronizer(std::move(options)));
  const Options& o = made->options_;
  std::vector<GradientRange> whole;
  for (const ParameterSpec& spec : o.model->parameters()) {
    whole.push_back({static_cast<int>(whole.size()), 0, spec.size()});
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      made->optimizer_, LocalOptimizer::Create({.ops = o.ops,
                                                .model = o.model,
                                                .optimizer = o.inner,
                                                .groups = o.groups,
                                                .ranges = std::move(whole)}));
  TRIBUTARY_CHECK(!made->optimizer_->phases().needs_sums());
  return made;
}

absl::StatusOr<int64_t> LocalSgdSynchronizer::Start(
    const MakeWeights& initial, const OnProgress& on_progress) {
  ParameterClient& client = *options_.client;
  TRIBUTARY_ASSIGN_OR_RETURN(RankProgress progress, client.ReadProgress());
  if (!progress.initialized && initial) {
    TRIBUTARY_ASSIGN_OR_RETURN(Weights weights, initial());
    TRIBUTARY_RETURN_IF_ERROR(
        client.Initialize(Pointers<const float>(weights)));
  }
  const auto step_after = [this](int64_t rounds) {
    return std::min(rounds * options_.period, options_.total_steps);
  };
  const WantedWeights wanted = StartingWeights(ApplyMode::kBulk, progress);
  progress.steps = step_after(progress.steps);
  progress.begun = step_after(progress.begun);
  on_progress(progress);
  std::vector<float*> start = Pointers<float>(start_);
  TRIBUTARY_RETURN_IF_ERROR(client.Pull(wanted, absl::MakeSpan(start)));
  CopyWeightsIn();
  inner_steps_ = 0;
  TRIBUTARY_RETURN_IF_ERROR(optimizer_->Reset());
  return progress.steps;
}

void LocalSgdSynchronizer::BeginStep(int64_t step, uint64_t samples) {
  step_ = step;
  samples_ = samples;
  if (step % options_.period == 0) round_samples_ = 0;
}

absl::StatusOr<int64_t> LocalSgdSynchronizer::FinishStep() {
  const Clock& clock = Clock::Real();
  const int64_t begin = clock.NowMicros();
  if (samples_ > 0) {
    optimizer_->UpdateAll(optimizer_->Prepare(
        ++inner_steps_, optimizer_->phases().optimizer().RatesAt(
                            step_, options_.learning_rate(step_))));
  }
  const int64_t updated = clock.NowMicros();
  spans_.clear();
  spans_.push_back({/*optimizer=*/true, begin, updated});
  round_samples_ += samples_;
  const int64_t finished = step_ + 1;
  if (finished % options_.period == 0 || finished == options_.total_steps) {
    TRIBUTARY_RETURN_IF_ERROR(Exchange());
    spans_.push_back({/*optimizer=*/false, updated, clock.NowMicros()});
  }
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.ops));
  return finished;
}

absl::Status LocalSgdSynchronizer::Exchange() {
  for (size_t p = 0; p < movement_.size(); ++p) {
    options_.ops->CopyOut(movement_[p].data(),
                          options_.model->weight(static_cast<int>(p)),
                          movement_[p].size() * sizeof(float));
  }
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*options_.ops));
  // A running average is sent unchanged: the servers average the received
  // values.
  for (size_t p = 0; p < movement_.size(); ++p) {
    if (options_.model->parameters()[p].is_running()) continue;
    std::transform(start_[p].begin(), start_[p].end(), movement_[p].begin(),
                   movement_[p].begin(),
                   [](float start, float now) { return start - now; });
  }
  ParameterClient& client = *options_.client;
  const std::vector<const float*> movement = Pointers<const float>(movement_);
  std::vector<float*> start = Pointers<float>(start_);
  client.BeginStep(step_ / options_.period, round_samples_, movement,
                   absl::MakeSpan(start));
  bucketer_.Reset();
  for (size_t p = movement_.size(); p-- > 0;) {
    bucketer_.MarkReady(static_cast<int>(p), [&client](const Block& block) {
      client.PushPull(block);
    });
  }
  TRIBUTARY_RETURN_IF_ERROR(client.FinishStep());
  CopyWeightsIn();
  return absl::OkStatus();
}

void LocalSgdSynchronizer::CopyWeightsIn() {
  for (size_t p = 0; p < start_.size(); ++p) {
    options_.ops->CopyIn(options_.model->weight(static_cast<int>(p)),
                         start_[p].data(), start_[p].size() * sizeof(float));
  }
}

LocalSgdSynchronizer::Traffic LocalSgdSynchronizer::traffic() const {
  const ParameterClient::Traffic traffic = options_.client->traffic();
  return {traffic.bytes_sent, traffic.bytes_received, traffic.retries};
}

}  // namespace tributary
