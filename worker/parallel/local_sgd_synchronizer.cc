#include "worker/parallel/local_sgd_synchronizer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/status/status_macros.h"
#include "worker/collective/device_fault.h"

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
    : options_(std::move(options)),
      optimizer_(options_.inner),
      bucketer_(options_.client->partition()) {
  TRIBUTARY_CHECK(!optimizer_.needs_trust_ratio());
  for (const ParameterSpec& spec : options_.model->parameters()) {
    start_.emplace_back(spec.size());
    movement_.emplace_back(spec.size());
  }
}

absl::StatusOr<std::unique_ptr<LocalSgdSynchronizer>>
LocalSgdSynchronizer::Create(Options options) {
  std::unique_ptr<LocalSgdSynchronizer> made(
      new LocalSgdSynchronizer(std::move(options)));
  for (const ParameterSpec& spec : made->options_.model->parameters()) {
    auto& states = made->state_.emplace_back();
    for (size_t i = 0; i < made->optimizer_.state_names().size(); ++i) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          DeviceArray<float> state,
          DeviceArray<float>::Allocate(made->options_.ops, spec.size()));
      states.push_back(std::move(state));
    }
  }
  return made;
}

absl::StatusOr<int64_t> LocalSgdSynchronizer::Start(
    const MakeWeights& initial, const OnPosition& on_position) {
  ParameterClient& client = *options_.client;
  TRIBUTARY_ASSIGN_OR_RETURN(const ParameterClient::Clock clock,
                             client.ReadClock());
  if (!clock.initialized && initial) {
    TRIBUTARY_ASSIGN_OR_RETURN(Weights weights, initial());
    TRIBUTARY_RETURN_IF_ERROR(
        client.Initialize(Pointers<const float>(weights)));
  }
  const auto step_after = [this](int64_t rounds) {
    return std::min(rounds * options_.period, options_.total_steps);
  };
  on_position({step_after(clock.steps), step_after(clock.begun)});
  std::vector<float*> start = Pointers<float>(start_);
  TRIBUTARY_RETURN_IF_ERROR(
      client.PullExact(clock.steps, absl::MakeSpan(start)));
  CopyWeightsIn();
  TRIBUTARY_RETURN_IF_ERROR(StartState());
  return step_after(clock.steps);
}

absl::Status LocalSgdSynchronizer::StartState() {
  inner_steps_ = 0;
  for (size_t p = 0; p < start_.size(); ++p) {
    const auto n = static_cast<int64_t>(start_[p].size());
    std::vector<std::vector<float>> host(state_[p].size(),
                                         std::vector<float>(n));
    optimizer_.InitializeState(n, start_[p].data(),
                               Pointers<float>(host).data());
    for (size_t i = 0; i < host.size(); ++i) {
      options_.ops->CopyIn(state_[p][i].data(), host[i].data(),
                           n * sizeof(float));
    }
    TRIBUTARY_RETURN_IF_ERROR(
        SynchronizeDevice(*options_.ops));  // copies from `host` must end here
  }
  return absl::OkStatus();
}

void LocalSgdSynchronizer::BeginStep(int64_t step, uint64_t samples) {
  step_ = step;
  samples_ = samples;
  if (step % options_.period == 0) round_samples_ = 0;
}

absl::StatusOr<int64_t> LocalSgdSynchronizer::FinishStep() {
  const Clock& clock = Clock::Real();
  const int64_t begin = clock.NowMicros();
  if (samples_ > 0) UpdateLocally();
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

void LocalSgdSynchronizer::UpdateLocally() {
  const OptimizerStep prepared =
      optimizer_.Prepare(++inner_steps_, options_.learning_rate(step_),
                         /*gradient_scale=*/1.0);
  for (size_t p = 0; p < state_.size(); ++p) {
    const int index = static_cast<int>(p);
    std::vector<float*> state;
    for (const DeviceArray<float>& s : state_[p]) state.push_back(s.data());
    float* weight = options_.model->weight(index);
    options_.ops->OptimizerUpdate(
        optimizer_.StepFor(options_.model->parameters()[p], prepared),
        static_cast<int64_t>(start_[p].size()), options_.model->gradient(index),
        weight, weight, state.data());
  }
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
