// SPDX-License-Identifier: Apache-2.0
#include "common/host/process_state.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/host/small_file.h"

namespace tributary {

ProcessFacts ReadProcessStat(absl::string_view stat) {
  // "PID (NAME) STATE PPID ...": the name may contain spaces and brackets.
  const size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return {};
  const std::vector<absl::string_view> fields =
      absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kState = 0;        // field 3 of the file
  constexpr size_t kStartTicks = 19;  // field 22
  ProcessFacts facts;
  if (fields.size() <= kStartTicks || fields[kState].size() != 1 ||
      !absl::SimpleAtoi(fields[kStartTicks], &facts.start_ticks)) {
    return {};
  }
  switch (fields[kState][0]) {
    case 'Z':
    case 'X':
      return {};
    case 'T':
    case 't':
      facts.state = ProcessState::kStopped;
      return facts;
    default:
      facts.state = ProcessState::kRuns;
      return facts;
  }
}

ProcessFacts LookAtProcess(int64_t pid) {
  if (pid < 1) return {};
  return ReadProcessStat(ReadText(absl::StrCat("/proc/", pid, "/stat")));
}

}  // namespace tributary
