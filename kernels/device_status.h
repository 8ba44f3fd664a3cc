#pragma once

#include <string>
#include <utility>

namespace tributary {

// What a device says. Kernels build where no other package stands (a GPU
// machine with CUDA and CMake alone), so this is not absl::Status; the callers
// in worker/ and server/ turn it into one.
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
