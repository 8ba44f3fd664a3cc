// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/ops.h"

namespace tributary {

// The device on which a thread other than the model's exchanges gradients.
struct ExchangeDevice {
  std::unique_ptr<Ops> beside;  // owns `ops` if it is not the model's
  // Used by the thread that exchanges gradients. On the host it may be the
  // model's Ops.
  Ops* ops = nullptr;
  Ops* model_ops = nullptr;  // computes the gradients; null: `ops`
  // Creates an event with which `ops` waits for `model_ops` on the device. Null
  // on the host, where nothing needs to wait.
  std::function<std::unique_ptr<DeviceEvent>()> new_event;
};

// Creates the second Ops and sets new_event, unless the device is the host.
// ResourceExhausted: the device has no room.
absl::StatusOr<ExchangeDevice> DeviceBeside(Ops* model_ops);

// Returns null if the device needs no events. ResourceExhausted: no room.
absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent(
    const ExchangeDevice& device);

}  // namespace tributary
