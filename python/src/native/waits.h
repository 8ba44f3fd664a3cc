// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace tributary {

// Runs calls that wait, without the GIL and so that Ctrl-C ends them. Python
// runs signal handlers in its main thread only. A call from the main thread is
// therefore made by a thread of this object, while the main thread looks for
// signals ten times a second. A call from any other thread is made by that
// thread itself. One call at a time.
class Waits {
 public:
  Waits() = default;
  ~Waits();
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  // Runs `call`. When a signal handler raises, calls `cancel`, waits for the
  // end of `call` and throws the handler's nb::python_error. Needs the GIL and
  // gives it back while it waits.
  void Run(absl::FunctionRef<void()> call, absl::FunctionRef<void()> cancel);

 private:
  void RunCalls();  // the thread

  absl::Mutex mu_;
  // The call to make; null when there is none.
  const absl::FunctionRef<void()>* call_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // started by the first call that needs it
};

// Runs `call` on a thread of its own, and looks for signals as Waits does. When
// a signal handler raises, leaves the thread behind, so `call` must own what it
// uses.
void RunOrAbandon(std::function<void()> call);

}  // namespace tributary
