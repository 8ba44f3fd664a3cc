// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/device/gradient_copier.h"

#include <algorithm>
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
  return made;
}

void GradientCopier::Begin(const Copy& copy) {
  computed_[copy.parameter]->Record(*device_.model_ops);
  thread_.Add([this, copy] { return Perform(copy); });
}

absl::Status GradientCopier::Perform(const Copy& copy) {
  computed_[copy.parameter]->Await(*device_.ops);
  for (int64_t begin = 0; begin < copy.size; begin += kPieceElements) {
    const int64_t end = std::min(begin + kPieceElements, copy.size);
    device_.ops->CopyOut(copy.to + begin, copy.from + begin,
                         (end - begin) * sizeof(float));
    if (absl::Status fault = DeviceFault(*device_.ops); !fault.ok()) {
      listener_.on_fault(fault);
      return fault;
    }
    listener_.on_copied(copy.parameter, begin, end);
  }
  return absl::OkStatus();
}

}  // namespace tributary
