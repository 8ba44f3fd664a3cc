#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/ops.h"

namespace tributary {

inline absl::Status ToStatus(const DeviceStatus& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("device: ", status.message()));
}

// Waits for the device. The first fault since the last call; it is told once.
inline absl::Status SynchronizeDevice(Ops& ops) {
  return ToStatus(ops.Synchronize());
}

// The first fault so far, without waiting and without forgetting it. Ask before
// what the device has computed is sent to anybody or used for an update.
inline absl::Status DeviceFault(const Ops& ops) {
  return ToStatus(ops.fault());
}

}  // namespace tributary
