// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace tributary::testing {

// Memory shared by a process that has loaded the clock_step library and the
// test that started it: a file with this content, mapped by both. The process
// finds the file in the environment variable kClockStepFile. A test linked with
// the library has its own memory.
struct ClockStep {
  // The offset of the process's wall clock. Changing it steps the clock.
  std::atomic<int64_t> offset_nanos;
  // Reads of the wall clock while the offset was not 0.
  std::atomic<int64_t> stepped_reads;
  // Waits that ended at, or continued past, a time of the stepped wall clock.
  std::atomic<int64_t> stepped_waits;
};

inline constexpr char kClockStepFile[] = "TRIBUTARY_CLOCK_STEP_FILE";

// This process's memory, when it is linked with the library.
extern "C" ClockStep* TributaryClockStep();

}  // namespace tributary::testing
