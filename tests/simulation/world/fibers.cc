// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define TRIBUTARY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRIBUTARY_ASAN 1
#endif
#endif
#if defined(TRIBUTARY_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tributary::simulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kGuardBytes = 4096;  // below the stack
// After this many waits in a row that end at once, a thread counts as spinning
// in a loop.
constexpr int64_t kMostTurns = 10'000;

// Thrown to leave a thread that is killed.
struct Killed {};

// Tells the address sanitizer of a change of stacks.
struct Switch {
  void Leave(const void* bottom, size_t size) {
#if defined(TRIBUTARY_ASAN)
    __sanitizer_start_switch_fiber(&fake_, bottom, size);
#else
    (void)bottom, (void)size;
#endif
  }
  // Leaves for the last time: nothing of the stack is needed any more.
  static void LeaveForGood(const void* bottom, size_t size) {
#if defined(TRIBUTARY_ASAN)
    __sanitizer_start_switch_fiber(nullptr, bottom, size);
#else
    (void)bottom, (void)size;
#endif
  }
  void Return(const void** bottom, size_t* size) {
#if defined(TRIBUTARY_ASAN)
    __sanitizer_finish_switch_fiber(fake_, bottom, size);
#else
    (void)bottom, (void)size;
#endif
  }

 private:
  void* fake_ = nullptr;
};

}  // namespace

class Fibers::Fiber {
 public:
  Fiber(Process* process, std::function<void()> work)
      : process_(process), work_(std::move(work)) {
    void* const mapped =
        mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    TRIBUTARY_CHECK(mapped != MAP_FAILED);
    TRIBUTARY_CHECK(mprotect(mapped, kGuardBytes, PROT_NONE) == 0);
    stack_ = static_cast<char*>(mapped) + kGuardBytes;
  }
  ~Fiber() {
#if defined(TRIBUTARY_ASAN)
    __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
    munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  Process* process() const { return process_; }
  bool done() const { return done_; }
  bool killed() const { return killed_; }
  int64_t waits() const { return waits_; }

  void Kill() {
    killed_ = true;
    if (!started_) done_ = true;
  }
  // Ends the thread's wait number `wait`, which has lasted long enough.
  void TimeOut(int64_t wait) { timed_out_ |= wait == waits_; }

  bool IsReady() const {
    if (done_) return false;
    if (!started_ || timed_out_ || killed_) return true;
    if (condition_ == nullptr) return false;
    const absl::MutexLock lock(mu_);
    return condition_->Eval();
  }

  // Runs the thread until it waits or ends. Called on the world's thread.
  void Run() {
    if (!started_) {
      started_ = true;
      TRIBUTARY_CHECK(getcontext(&context_) == 0);
      context_.uc_stack.ss_sp = stack_;
      context_.uc_stack.ss_size = kStackBytes;
      context_.uc_link = nullptr;
      const auto self = reinterpret_cast<uintptr_t>(this);
      makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
                  static_cast<unsigned>(self >> 32),
                  static_cast<unsigned>(self));
    }
    Switch change;
    change.Leave(stack_, kStackBytes);
    TRIBUTARY_CHECK(swapcontext(&world_, &context_) == 0);
    change.Return(nullptr, nullptr);
  }

  // Waits. Called on the thread itself, which holds mu before and after.
  void Wait(absl::Mutex* mu, const absl::Condition* condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    mu_ = mu;
    condition_ = condition;
    timed_out_ = false;
    mu->Unlock();
    Switch change;
    change.Leave(world_bottom_, world_size_);
    TRIBUTARY_CHECK(swapcontext(&context_, &world_) == 0);
    change.Return(&world_bottom_, &world_size_);
    mu->Lock();
    condition_ = nullptr;
    ++waits_;
    // A destructor must not throw. Its condition holds here, because it waits
    // for other threads, and these are killed before.
    if (killed_ && !condition->Eval()) throw Killed();
  }

 private:
  static void Enter(unsigned high, unsigned low) {
    reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low)->Main();
  }
  void Main() {
    Switch().Return(&world_bottom_, &world_size_);
    try {
      work_();
    } catch (const Killed&) {
    }
    work_ = nullptr;
    done_ = true;
    Switch::LeaveForGood(world_bottom_, world_size_);
    setcontext(&world_);
  }

  Process* const process_;
  std::function<void()> work_;
  char* stack_ = nullptr;
  ucontext_t context_{}, world_{};
  const void* world_bottom_ = nullptr;  // the stack of the world's thread
  size_t world_size_ = 0;
  bool started_ = false, done_ = false, killed_ = false;

  absl::Mutex* mu_ = nullptr;
  const absl::Condition* condition_ = nullptr;  // null: it does not wait
  bool timed_out_ = false;
  int64_t waits_ = 0;  // that have ended
};

Fibers::Fibers(World* world) : world_(world) {
  TRIBUTARY_CHECK(simulated_runtime == nullptr);
  simulated_runtime = this;
}

Fibers::~Fibers() {
  for (size_t i = fibers_.size(); i-- > 0;) {
    const std::shared_ptr<Fiber> fiber = fibers_[i];
    fiber->Kill();
    if (!fiber->done()) Resume(fiber.get());
  }
  simulated_runtime = nullptr;
}

void Fibers::Resume(Fiber* fiber) {
  running_ = fiber;
  turns_ = 0;
  fiber->Run();
  running_ = nullptr;
}

bool Fibers::MayRun(const Fiber& fiber) const {
  return fiber.process()->alive() &&
         fiber.process()->paused_until() <= world_->now();
}

bool Fibers::RunOne() {
  for (const std::shared_ptr<Fiber>& fiber : fibers_) {
    if (!MayRun(*fiber) || !fiber->IsReady()) continue;
    const std::shared_ptr<Fiber> keep = fiber;
    Resume(keep.get());
    return true;
  }
  return false;
}

void Fibers::Settle() {
  while (RunOne()) {
  }
  fibers_.erase(std::remove_if(fibers_.begin(), fibers_.end(),
                               [](const auto& fiber) { return fiber->done(); }),
                fibers_.end());
}

void Fibers::Kill(const Process* process) {
  TRIBUTARY_CHECK(running_ == nullptr);
  // Threads that are started meanwhile come after these.
  for (size_t i = fibers_.size(); i-- > 0;) {
    const std::shared_ptr<Fiber> fiber = fibers_[i];
    if (fiber->process() != process || fiber->done()) continue;
    fiber->Kill();
    if (!fiber->done()) Resume(fiber.get());
  }
}

std::function<void()> Fibers::Start(Process* process,
                                    std::function<void()> work) {
  auto fiber = std::make_shared<Fiber>(process, std::move(work));
  fibers_.push_back(fiber);
  return [this, fiber] { Await([&fiber] { return fiber->done(); }); };
}

std::function<void()> Fibers::Start(std::function<void()> work) {
  TRIBUTARY_CHECK(running_ != nullptr);
  return Start(running_->process(), std::move(work));
}

absl::Duration Fibers::Now() { return absl::Microseconds(world_->now()); }

void Fibers::WakeAfter(int64_t micros, World::Kind kind) {
  for (const std::shared_ptr<Fiber>& fiber : fibers_) {
    if (fiber.get() != running_) continue;
    world_->After(micros, fiber->process(), kind,
                  [fiber, wait = fiber->waits()] { fiber->TimeOut(wait); });
  }
}

bool Fibers::AwaitFor(absl::Mutex* mu, const absl::Condition& condition,
                      absl::Duration timeout) {
  Fiber* const fiber = running_;
  if (fiber == nullptr) return condition.Eval();
  if (fiber->killed()) {
    // From here on only destructors of this thread run.
    if (!condition.Eval() && std::uncaught_exceptions() == 0) throw Killed();
    return condition.Eval();
  }
  if (condition.Eval() || timeout <= absl::ZeroDuration()) {
    if (++turns_ < kMostTurns) return condition.Eval();
    world_->Violate(absl::StrCat(fiber->process()->name(),
                                 " turns in a loop and never waits"));
    fiber->Kill();
    throw Killed();
  }
  if (timeout != absl::InfiniteDuration()) {
    WakeAfter(absl::ToInt64Microseconds(timeout), World::Kind::kIdle);
  }
  fiber->Wait(mu, &condition);
  turns_ = 0;
  return condition.Eval();
}

bool Fibers::killed() const {
  return running_ != nullptr && running_->killed();
}

void Fibers::Await(const std::function<bool()>& condition) {
  absl::Mutex mu;
  const absl::MutexLock lock(&mu);
  AwaitFor(&mu, absl::Condition(&condition), absl::InfiniteDuration());
}

void Fibers::Sleep(int64_t micros, World::Kind kind) {
  TRIBUTARY_CHECK(running_ != nullptr);
  absl::Mutex mu;
  const absl::MutexLock lock(&mu);
  const bool never = false;
  const absl::Condition condition(&never);
  if (running_->killed()) throw Killed();
  WakeAfter(micros, kind);
  running_->Wait(&mu, &condition);
}

}  // namespace tributary::simulation
