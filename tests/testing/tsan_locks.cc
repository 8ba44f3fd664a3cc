// SPDX-License-Identifier: Apache-2.0
// Debian's Abseil is built without ThreadSanitizer. The sanitizer therefore
// does not see the synchronization of absl::Mutex and absl::Notification and
// would report false races. The linker replaces these functions by wrappers
// (--wrap, see tributary_test), which call the original and inform the
// sanitizer. A function that is missing here causes a false race and never
// hides a real one.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

using absl::Condition;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

// The effect of a call on the order of threads: it acquires what other threads
// released through `object`, releases to them, or does both around a wait.
#define TRIBUTARY_ACQUIRES(symbol, object_type)                          \
  extern "C" void __real_##symbol(object_type* object);                  \
  extern "C" void __wrap_##symbol(object_type* object) {                 \
    __real_##symbol(object);                                             \
    __tsan_acquire(const_cast<void*>(static_cast<const void*>(object))); \
  }
#define TRIBUTARY_RELEASES(symbol, object_type)          \
  extern "C" void __real_##symbol(object_type* object);  \
  extern "C" void __wrap_##symbol(object_type* object) { \
    __tsan_release(object);                              \
    __real_##symbol(object);                             \
  }
#define TRIBUTARY_ACQUIRES_WHEN(symbol)                                       \
  extern "C" void __real_##symbol(Mutex* mutex, const Condition& condition);  \
  extern "C" void __wrap_##symbol(Mutex* mutex, const Condition& condition) { \
    __real_##symbol(mutex, condition);                                        \
    __tsan_acquire(mutex);                                                    \
  }
#define TRIBUTARY_AWAITS(symbol, limit_type)                                \
  extern "C" bool __real_##symbol(Mutex* mutex, const Condition& condition, \
                                  limit_type limit);                        \
  extern "C" bool __wrap_##symbol(Mutex* mutex, const Condition& condition, \
                                  limit_type limit) {                       \
    __tsan_release(mutex);                                                  \
    const bool result = __real_##symbol(mutex, condition, limit);           \
    __tsan_acquire(mutex);                                                  \
    return result;                                                          \
  }

TRIBUTARY_ACQUIRES(_ZN4absl7debian35Mutex4LockEv, Mutex)
TRIBUTARY_RELEASES(_ZN4absl7debian35Mutex6UnlockEv, Mutex)
TRIBUTARY_ACQUIRES_WHEN(_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE)
TRIBUTARY_AWAITS(
    _ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE,
    Duration)
TRIBUTARY_AWAITS(
    _ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, Time)

extern "C" void __real__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(
    Mutex* mutex, const Condition& condition);
extern "C" void __wrap__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(
    Mutex* mutex, const Condition& condition) {
  __tsan_release(mutex);
  __real__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(mutex, condition);
  __tsan_acquire(mutex);
}

TRIBUTARY_RELEASES(_ZN4absl7debian312Notification6NotifyEv, Notification)
TRIBUTARY_ACQUIRES(_ZNK4absl7debian312Notification19WaitForNotificationEv,
                   const Notification)

extern "C" bool
__real__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    const Notification* notification, Duration limit);
extern "C" bool
__wrap__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    const Notification* notification, Duration limit) {
  const bool result =
      __real__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
          notification, limit);
  __tsan_acquire(const_cast<Notification*>(notification));
  return result;
}
