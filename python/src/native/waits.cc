// SPDX-License-Identifier: Apache-2.0
#include "python/src/native/waits.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/host/steady_waits.h"

namespace nb = nanobind;

namespace tributary {
namespace {

constexpr absl::Duration kSignalPause = absl::Milliseconds(100);

// On Linux the main thread's ID is the process's ID.
bool InMainThread() { return gettid() == getpid(); }

// Waits until `done`, and throws when a signal handler raises. Needs the GIL.
void AwaitOrSignal(absl::Mutex* mu, const absl::Condition& done) {
  while (true) {
    bool is_done = false;
    {
      nb::gil_scoped_release without_gil;
      absl::MutexLock lock(mu);
      is_done = AwaitFor(mu, done, kSignalPause);
    }
    if (is_done) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

struct Abandonable {
  absl::Mutex mu;
  bool done ABSL_GUARDED_BY(mu) = false;
};

}  // namespace

Waits::~Waits() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
  }
  thread_.join();
}

void Waits::Run(absl::FunctionRef<void()> call,
                absl::FunctionRef<void()> cancel) {
  if (!InMainThread()) {
    nb::gil_scoped_release without_gil;
    call();
    return;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { RunCalls(); });
  {
    absl::MutexLock lock(&mu_);
    call_ = &call;
  }
  const auto is_done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return call_ == nullptr;
  };
  try {
    AwaitOrSignal(&mu_, absl::Condition(&is_done));
  } catch (const nb::python_error&) {
    nb::gil_scoped_release without_gil;
    cancel();
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&is_done));
    throw;
  }
}

void Waits::RunCalls() {
  const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return call_ != nullptr || ended_;
  };
  while (true) {
    const absl::FunctionRef<void()>* call = nullptr;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_news));
      call = call_;
    }
    if (call == nullptr) return;
    (*call)();
    absl::MutexLock lock(&mu_);
    call_ = nullptr;
  }
}

void RunOrAbandon(std::function<void()> call) {
  const auto state = std::make_shared<Abandonable>();
  std::thread([state, call = std::move(call)] {
    call();
    absl::MutexLock lock(&state->mu);
    state->done = true;
  }).detach();
  AwaitOrSignal(&state->mu, absl::Condition(&state->done));
}

}  // namespace tributary
