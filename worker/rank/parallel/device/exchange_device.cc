// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/device/exchange_device.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tributary {

absl::StatusOr<ExchangeDevice> DeviceBeside(Ops* model_ops) {
  ExchangeDevice device{.ops = model_ops, .model_ops = model_ops};
  if (model_ops->is_host()) return device;
  std::string why;
  device.beside = CreateOpsBeside(*model_ops, &why);
  if (device.beside == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("device ", model_ops->device_name(), ": ", why));
  }
  device.ops = device.beside.get();
  device.new_event = [model_ops] {
    std::string why_not;
    return CreateDeviceEvent(*model_ops, &why_not);
  };
  return device;
}

absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent(
    const ExchangeDevice& device) {
  if (!device.new_event) return nullptr;
  std::unique_ptr<DeviceEvent> event = device.new_event();
  if (event == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no event on device ", device.ops->device_name()));
  }
  return event;
}

}  // namespace tributary
