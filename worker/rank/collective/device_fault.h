// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/ops.h"

namespace tributary {

inline absl::Status ToStatus(const DeviceStatus& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("device: ", status.message()));
}

// Waits for the device and returns its first fault since the last call.
inline absl::Status SynchronizeDevice(Ops& ops) {
  return ToStatus(ops.Synchronize());
}

// Returns the first fault so far, without waiting and without clearing it.
// Check this before the device's results are sent or used for an update.
inline absl::Status DeviceFault(const Ops& ops) {
  return ToStatus(ops.fault());
}

}  // namespace tributary
