// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace tributary {

// A thread that copies between a device and the host, so that neither the
// device nor the caller waits for a copy. Thread-safe.
class CopyThread {
 public:
  using Copy = std::function<absl::Status()>;

  CopyThread();
  // Gives up the copies that have not begun.
  ~CopyThread();
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;

  // Runs `copy` after those added before it, unless one of them fails.
  void Add(Copy copy) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until all copies that were added have ended. Returns the first error.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);  // runs on thread_

  absl::Mutex mu_;
  std::deque<Copy> waiting_ ABSL_GUARDED_BY(mu_);
  int left_ ABSL_GUARDED_BY(mu_) = 0;  // added and not ended
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
