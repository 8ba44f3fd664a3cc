// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace tributary {

// Cancels work that waits for other ranks when the job or the plan ends, even
// if the end comes before the work is attached. Thread-safe. `cancel` is called
// with the lock held.
class Canceller {
 public:
  using Cancels = std::function<void(const std::string& why)>;

  void Attach(Cancels cancel, uint64_t plan_epoch) {
    absl::MutexLock lock(&mu_);
    cancel_ = std::move(cancel);
    plan_epoch_ = plan_epoch;
    CancelLocked();
  }
  void Detach() {
    absl::MutexLock lock(&mu_);
    cancel_ = nullptr;
  }
  void Cancel(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    why_ = std::string(status.message());
    CancelLocked();
  }
  void CancelBefore(uint64_t plan_epoch) {
    absl::MutexLock lock(&mu_);
    newest_epoch_ = plan_epoch;
    CancelLocked();
  }

 private:
  void CancelLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (cancel_ == nullptr) return;
    if (!why_.empty()) {
      cancel_(why_);
    } else if (plan_epoch_ < newest_epoch_) {
      cancel_("a new plan is in force");
    }
  }

  absl::Mutex mu_;
  Cancels cancel_ ABSL_GUARDED_BY(mu_);
  uint64_t plan_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t newest_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  std::string why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
