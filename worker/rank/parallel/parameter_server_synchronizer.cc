// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/parameter_server_synchronizer.h"

#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

ParameterServerSynchronizer::ParameterServerSynchronizer(Options* options)
    : client_(std::move(options->client)),
      residuals_(std::move(options->residuals)),
      gradient_memory_(std::move(options->gradient_memory)),
      model_(options->model),
      ops_(options->device.model_ops),
      mode_(options->mode),
      bucketer_(client_->partition(),
                [this](const Block& block) { return client_->Holds(block); }),
      place_in_plan_(std::move(options->place_in_plan)),
      weights_ops_(std::move(options->weights_ops)) {
  MakeCopies();
}

absl::StatusOr<std::unique_ptr<ParameterServerSynchronizer>>
ParameterServerSynchronizer::Create(Options options) {
  std::unique_ptr<ParameterServerSynchronizer> made(
      new ParameterServerSynchronizer(&options));
  if (made->ops_->is_host()) return made;
  TRIBUTARY_CHECK(made->weights_ops_ != nullptr);
  made->loads_ = std::make_unique<CopyThread>();
  made->client_->OnWeights([s = made.get()](const Block& block) {
    // The client, which owns the block, may end before the copy.
    s->loads_->Add([s, slices = block.slices] { return s->Load(slices); });
  });
  GradientCopier::Listener listener;
  listener.on_copied = [s = made.get()](int parameter, int64_t begin,
                                        int64_t end) {
    s->Push(s->place_in_plan_[parameter], begin, end);
  };
  listener.on_fault = [s = made.get()](const absl::Status& fault) {
    s->Cancel(std::string(fault.message()));
  };
  TRIBUTARY_ASSIGN_OR_RETURN(
      made->copier_,
      GradientCopier::Create(std::move(options.device),
                             static_cast<int>(made->place_in_plan_.size()),
                             std::move(listener)));
  return made;
}

ParameterServerSynchronizer::~ParameterServerSynchronizer() {
  // Each member may still use those after it, and all may use the copies.
  copier_ = nullptr;
  residuals_ = nullptr;
  client_ = nullptr;
  loads_ = nullptr;
  if (gradient_memory_ != nullptr) gradient_memory_->OnDetach(nullptr);
}

std::unique_ptr<PinnedMemory> ParameterServerSynchronizer::Pin(
    SharedBuffer& copy, int64_t size, std::string* why_not) {
  if (!SharedBuffer::HasPages(size)) return nullptr;
  return ops_->Pin(copy.data(), size * sizeof(float), why_not);
}

void ParameterServerSynchronizer::MakeCopies() {
  const ParameterSpecs& parameters = model_->parameters();
  const ParameterSpecs& planned = client_->partition().parameters();
  std::string why_not;
  weights_.resize(planned.size());
  gradients_.resize(planned.size());
  index_of_.resize(planned.size(), -1);
  TRIBUTARY_CHECK(place_in_plan_.size() == parameters.size());
  for (size_t p = 0; p < parameters.size(); ++p) {
    const int index = static_cast<int>(p), place = place_in_plan_[p];
    TRIBUTARY_CHECK(parameters[p].shape == planned[place].shape);
    index_of_[place] = index;
    if (ops_->is_host()) {
      weights_[place] = model_->weight(index);
      gradients_[place] = model_->gradient(index);
      continue;
    }
    const int64_t size = parameters[p].size();
    SharedBuffer& weights = copies_.emplace_back(size);
    weights_[place] = weights.data();
    weight_pins_.push_back(Pin(weights, size, &why_not));
    SharedBuffer& gradient =
        copies_.emplace_back(size, /*stagger=*/0, gradient_memory_);
    gradients_[place] = gradient.data();
    gradient_pins_.push_back(Pin(gradient, size, &why_not));
  }
  if (gradient_memory_ != nullptr && !ops_->is_host()) {
    gradient_memory_->OnDetach([this] { gradient_pins_.clear(); });
  }
  if (!why_not.empty()) {
    spdlog::warn(
        "copies of gradients and weights between host and device take several "
        "times as long, because the driver does not pin their memory: {}",
        why_not);
  }
}

absl::StatusOr<int64_t> ParameterServerSynchronizer::Start(
    const MakeWeights& initial, const OnProgress& on_progress) {
  TRIBUTARY_ASSIGN_OR_RETURN(RankProgress progress, client_->ReadProgress());
  if (!progress.initialized && initial) {
    TRIBUTARY_ASSIGN_OR_RETURN(const Weights weights, initial());
    std::vector<const float*> tensors;
    for (const std::vector<float>& tensor : weights) {
      tensors.push_back(tensor.data());
    }
    TRIBUTARY_RETURN_IF_ERROR(client_->Initialize(tensors));
  }
  const std::optional<int64_t> finished = FinishedBeforePull(mode_, progress);
  if (finished) on_progress(progress);
  TRIBUTARY_RETURN_IF_ERROR(client_->Pull(StartingWeights(mode_, progress),
                                          absl::MakeSpan(weights_)));
  if (!finished) {
    progress.steps = client_->oldest_version();
    on_progress(progress);
  }
  if (residuals_ != nullptr) {
    TRIBUTARY_RETURN_IF_ERROR(
        residuals_->Restore(progress.steps, client_->residuals()));
  }
  TRIBUTARY_RETURN_IF_ERROR(LoadAll());
  return progress.steps;
}

absl::Status ParameterServerSynchronizer::LoadVersion(int64_t version) {
  TRIBUTARY_RETURN_IF_ERROR(client_->Pull(
      {WantedWeights::Kind::kExactly, version}, absl::MakeSpan(weights_)));
  return LoadAll();
}

void ParameterServerSynchronizer::BeginStep(int64_t step, uint64_t samples) {
  step_ = step;
  samples_ = samples;
  bucketer_.Reset();
  client_->BeginStep(step, samples, gradients_, absl::MakeSpan(weights_),
                     learning_rates_);
}

void ParameterServerSynchronizer::GradientReady(int parameter) {
  if (fault_.ok()) {
    fault_ = DeviceFault(*ops_);
    if (!fault_.ok()) Cancel(std::string(fault_.message()));
  }
  if (!fault_.ok()) return;
  const int place = place_in_plan_[parameter];
  const int64_t size = model_->parameters()[parameter].size();
  if (copier_ == nullptr || samples_ == 0) return Push(place, 0, size);
  copier_->Begin(
      {parameter, model_->gradient(parameter), gradients_[place], size});
}

void ParameterServerSynchronizer::Push(int place, int64_t begin, int64_t end) {
  bucketer_.MarkReady(place, begin, end,
                      [this](const Block& block) { client_->PushPull(block); });
}

absl::StatusOr<int64_t> ParameterServerSynchronizer::FinishStep() {
  if (copier_ != nullptr) fault_.Update(copier_->Wait());
  TRIBUTARY_RETURN_IF_ERROR(fault_);
  TRIBUTARY_RETURN_IF_ERROR(client_->FinishStep());
  if (loads_ != nullptr) {
    TRIBUTARY_RETURN_IF_ERROR(loads_->Wait());
    TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*weights_ops_));
  }
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
  int64_t finished = step_ + 1;
  if (const std::optional<WantedWeights> wanted =
          CatchUp(mode_, finished, client_->newest_version())) {
    TRIBUTARY_RETURN_IF_ERROR(client_->Pull(*wanted, absl::MakeSpan(weights_)));
    TRIBUTARY_RETURN_IF_ERROR(LoadAll());
    finished = client_->oldest_version();
  }
  if (residuals_ != nullptr) {
    residuals_->WriteIfDue(finished, client_->residuals());
  }
  return finished;
}

absl::Status ParameterServerSynchronizer::Checkpoint(int64_t step, bool best) {
  if (residuals_ == nullptr) return absl::OkStatus();
  residuals_->Write(step, client_->residuals());
  if (best) residuals_->SetBest(step);
  return absl::OkStatus();
}

absl::Status ParameterServerSynchronizer::End(int64_t step) {
  if (residuals_ != nullptr) {
    residuals_->WriteAtEnd(step, client_->residuals());
  }
  return absl::OkStatus();
}

absl::Status ParameterServerSynchronizer::WaitUntilPushed() {
  if (copier_ != nullptr) TRIBUTARY_RETURN_IF_ERROR(copier_->Wait());
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const RankProgress progress,
                               client_->ReadProgress());
    if (progress.steps > step_) return absl::OkStatus();
  }
}

absl::Status ParameterServerSynchronizer::Load(
    const std::vector<Slice>& slices) {
  for (const Slice& slice : slices) {
    const int index = index_of_[slice.parameter];
    if (index < 0) continue;
    weights_ops_->CopyIn(model_->weight(index) + slice.begin,
                         weights_[slice.parameter] + slice.begin,
                         slice.size() * sizeof(float));
  }
  return DeviceFault(*weights_ops_);
}

absl::Status ParameterServerSynchronizer::LoadAll() {
  for (size_t p = 0; p < place_in_plan_.size() && !ops_->is_host(); ++p) {
    const int index = static_cast<int>(p);
    ops_->CopyIn(model_->weight(index), weights_[place_in_plan_[p]],
                 model_->parameters()[p].size() * sizeof(float));
  }
  return SynchronizeDevice(*ops_);
}

std::vector<GradientSynchronizer::Span> ParameterServerSynchronizer::spans()
    const {
  std::vector<Span> spans;
  for (const ParameterClient::Flight& flight : client_->flights()) {
    spans.push_back(
        {/*optimizer=*/false, flight.begin_micros, flight.end_micros});
  }
  return spans;
}

ParameterServerSynchronizer::Traffic ParameterServerSynchronizer::traffic()
    const {
  const ParameterClient::Traffic traffic = client_->traffic();
  return {traffic.bytes_sent, traffic.bytes_received, traffic.retries};
}

}  // namespace tributary
