#pragma once

#include <atomic>
#include <cstdint>

namespace tributary::testing {

// What a process that has loaded the library clock_step and the test that
// started it share: a file of this content, mapped by both. The process finds
// it by the environment variable kClockStepFile; a test that is linked with the
// library has one of its own.
struct ClockStep {
  // By how much the wall clock of the process is off. A change is a step.
  std::atomic<int64_t> offset_nanos;
  // How often the process has read the wall clock while it was off.
  std::atomic<int64_t> stepped_reads;
  // Waits that ended at or went on past a moment of the stepped wall clock.
  std::atomic<int64_t> stepped_waits;
};

inline constexpr char kClockStepFile[] = "TRIBUTARY_CLOCK_STEP_FILE";

// Of this process, when it is linked with the library.
extern "C" ClockStep* TributaryClockStep();

}  // namespace tributary::testing
