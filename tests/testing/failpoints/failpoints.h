// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

// Gives the places of common/base/failpoint.h their actions. Programs that are
// built with the tests read it from the environment when they start (arm.cc):
//
//   TRIBUTARY_FAILPOINT=name:nth:action[,name:nth:action...]
//   TRIBUTARY_FAILPOINT_FIRED=DIRECTORY
//
// When a process reaches the place `name` for the nth time (counted from 1), it
// does the action and reports it on stderr:
//   kill        kills itself with SIGKILL
//   stop        stops itself with SIGSTOP until it is continued
//   error       takes the error branch of TRIBUTARY_FAILPOINT_OR
//   delay=MS    sleeps for MS milliseconds
//   hold        sleeps, in this thread alone, while the entry's file is there
// With a DIRECTORY, each entry fires once: in the first process that reaches
// it, and not again in its replacement. It leaves the file DIRECTORY/name:nth
// with one line, the process ID and the action. Without a DIRECTORY, the entry
// fires in every process.
namespace tributary::failpoint {

enum class Action { kNone, kKill, kStop, kError, kDelay, kHold };

struct Entry {
  std::string id;  // name:nth
  std::string name;
  int64_t nth = 0;
  std::string what;  // the action as written in the entry
  Action action = Action::kNone;
  int64_t delay_ms = 0;
  std::string file;  // DIRECTORY/name:nth; empty without a DIRECTORY
};

// Parses entries separated by commas. False when one is malformed.
bool ReadEntries(std::string_view text, std::vector<Entry>* entries);

// The failpoints of a process. Thread-safe.
class Failpoints {
 public:
  // `entries` as in TRIBUTARY_FAILPOINT; aborts when one is malformed. `fired`:
  // the DIRECTORY, or empty.
  Failpoints(std::string_view entries, std::string_view fired);

  // Counts a visit of the place `name`. Returns the entry that fires now, or
  // null. Reports it before the action.
  const Entry* Reach(std::string_view name);

 private:
  std::vector<Entry> entries_;  // fixed at construction

  std::mutex mu_;
  std::map<std::string, int64_t, std::less<>> visits_;  // guarded by mu_
};

// Does the entry's action. True when the caller must take its error branch.
bool Act(const Entry& entry);

// Sets the hooks of common/base/failpoint.h; an empty text removes them.
void Arm(std::string_view entries, std::string_view fired);

}  // namespace tributary::failpoint
