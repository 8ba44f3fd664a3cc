// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace tributary {

// The status of a device. Kernels must build where no package is installed (a
// GPU machine with only CUDA and CMake), so this is not absl::Status. The
// callers in worker/ and server/ convert it.
class [[nodiscard]] DeviceStatus {
 public:
  DeviceStatus() = default;
  static DeviceStatus Error(std::string message) {
    DeviceStatus status;
    status.ok_ = false;
    status.message_ = std::move(message);
    return status;
  }

  bool ok() const { return ok_; }
  const std::string& message() const { return message_; }

 private:
  bool ok_ = true;
  std::string message_;
};

}  // namespace tributary
