// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/rank/parallel/exchange_device.h"

namespace tributary {

// Copies gradients from a device to host memory on a thread of its own, so that
// neither the device nor the caller waits for a copy during the backward pass.
// One thread may call it.
class GradientCopier {
 public:
  struct Copy {
    int parameter = 0;
    const float* from = nullptr;  // on the device
    float* to = nullptr;
    int64_t size = 0;
  };
  // The copier's thread calls both.
  struct Listener {
    // Called after each copy, in the order of Begin.
    std::function<void(int parameter)> on_copied;
    // Called once, when the device has failed. Nothing is copied after that.
    std::function<void(const absl::Status& fault)> on_fault;
  };

  // ResourceExhausted: the device has no room. `device` has two Ops.
  static absl::StatusOr<std::unique_ptr<GradientCopier>> Create(
      ExchangeDevice device, int parameters, Listener listener);
  // Gives up the copies that have not begun.
  ~GradientCopier();
  GradientCopier(const GradientCopier&) = delete;
  GradientCopier& operator=(const GradientCopier&) = delete;

  // Copies a gradient once the model's Ops has done all work that it was given
  // before this call. Returns at once.
  void Begin(const Copy& copy) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until all copies that were begun have ended. Returns the device's
  // first fault.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  GradientCopier(ExchangeDevice device, Listener listener);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);  // runs on thread_
  absl::Status Perform(const Copy& copy);

  const ExchangeDevice device_;
  const Listener listener_;
  std::vector<std::unique_ptr<DeviceEvent>> computed_;  // [parameter]

  absl::Mutex mu_;
  std::deque<Copy> begun_ ABSL_GUARDED_BY(mu_);
  int left_ ABSL_GUARDED_BY(mu_) = 0;  // begun and not ended
  absl::Status fault_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
