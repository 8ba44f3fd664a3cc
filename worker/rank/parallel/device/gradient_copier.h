// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/rank/parallel/device/copy_thread.h"
#include "worker/rank/parallel/device/exchange_device.h"

namespace tributary {

// Copies gradients from a device to host memory on a thread of its own, so that
// neither the device nor the caller waits for a copy during the backward pass.
// A large gradient is copied in pieces, so that its first blocks leave while
// the rest is copied. One thread may call it.
class GradientCopier {
 public:
  static constexpr int64_t kPieceElements = 1 << 20;  // 4 MiB

  struct Copy {
    int parameter = 0;
    const float* from = nullptr;  // on the device
    float* to = nullptr;
    int64_t size = 0;
  };
  // The copier's thread calls both.
  struct Listener {
    // Called after each piece, elements begin to end - 1 of a parameter, in the
    // order of Begin and of the elements.
    std::function<void(int parameter, int64_t begin, int64_t end)> on_copied;
    // Called once, when the device has failed. Nothing is copied after that.
    std::function<void(const absl::Status& fault)> on_fault;
  };

  // ResourceExhausted: the device has no room. `device` has two Ops.
  static absl::StatusOr<std::unique_ptr<GradientCopier>> Create(
      ExchangeDevice device, int parameters, Listener listener);
  // Gives up the copies that have not begun.
  ~GradientCopier() = default;
  GradientCopier(const GradientCopier&) = delete;
  GradientCopier& operator=(const GradientCopier&) = delete;

  // Copies a gradient once the model's Ops has done all work that it was given
  // before this call. Returns at once.
  void Begin(const Copy& copy);
  // Waits until all copies that were begun have ended. Returns the device's
  // first fault.
  absl::Status Wait() { return thread_.Wait(); }

 private:
  GradientCopier(ExchangeDevice device, Listener listener);
  absl::Status Perform(const Copy& copy);

  const ExchangeDevice device_;
  const Listener listener_;
  std::vector<std::unique_ptr<DeviceEvent>> computed_;  // [parameter]
  CopyThread thread_;  // the last member: its copies use the others
};

}  // namespace tributary
