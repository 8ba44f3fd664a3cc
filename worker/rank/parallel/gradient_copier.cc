// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/gradient_copier.h"

#include <utility>

#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

GradientCopier::GradientCopier(ExchangeDevice device, Listener listener)
    : device_(std::move(device)), listener_(std::move(listener)) {}

absl::StatusOr<std::unique_ptr<GradientCopier>> GradientCopier::Create(
    ExchangeDevice device, int parameters, Listener listener) {
  std::unique_ptr<GradientCopier> made(
      new GradientCopier(std::move(device), std::move(listener)));
  for (int p = 0; p < parameters; ++p) {
    TRIBUTARY_ASSIGN_OR_RETURN(made->computed_.emplace_back(),
                               NewEvent(made->device_));
  }
  made->thread_ = std::thread([copier = made.get()] { copier->Run(); });
  return made;
}

GradientCopier::~GradientCopier() {
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void GradientCopier::Begin(const Copy& copy) {
  computed_[copy.parameter]->Record(*device_.model_ops);
  absl::MutexLock lock(&mu_);
  begun_.push_back(copy);
  ++left_;
}

absl::Status GradientCopier::Wait() {
  const auto ended = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mu_) { return left_ == 0; };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&ended));
  return fault_;
}

void GradientCopier::Run() {
  const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || !begun_.empty();
  };
  while (true) {
    Copy copy;
    bool failed = false;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&wake));
      if (closing_) return;
      copy = begun_.front();
      begun_.pop_front();
      failed = !fault_.ok();
    }
    const absl::Status status = failed ? absl::OkStatus() : Perform(copy);
    absl::MutexLock lock(&mu_);
    fault_.Update(status);
    --left_;
  }
}

absl::Status GradientCopier::Perform(const Copy& copy) {
  computed_[copy.parameter]->Await(*device_.ops);
  device_.ops->CopyOut(copy.to, copy.from, copy.size * sizeof(float));
  const absl::Status fault = DeviceFault(*device_.ops);
  if (fault.ok()) {
    listener_.on_copied(copy.parameter);
  } else {
    listener_.on_fault(fault);
  }
  return fault;
}

}  // namespace tributary
