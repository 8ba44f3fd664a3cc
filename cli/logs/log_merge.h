// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/run/program/log_follower.h"

namespace tributary {

// Which lines of a run's logs are shown.
struct LogFilter {
  std::string role;              // "worker"; empty: every role
  std::optional<int64_t> index;  // shard or rank; nullopt: all of them
  absl::Time since = absl::InfinitePast();

  // Whether the filter takes a file such as "worker-1.log".
  bool Takes(absl::string_view file_name) const;
};

// Reads "10m", "90s" (before `now`) or "2026-11-21T08:23:08Z". InvalidArgument
// says which texts are valid.
absl::StatusOr<absl::Time> ParseSince(absl::string_view text, absl::Time now);

// The processes whose logs are in the folder, as in "worker-1", sorted.
std::vector<std::string> LoggedProcesses(const std::string& folder);

// The log files of a run as one stream of lines in the order of their times. A
// line without a time (the output of a program) has the time of the line before
// it in its file. If there is none, the line comes first and is always shown.
class LogMerge {
 public:
  // `folder`: the run's logs/.
  LogMerge(std::string folder, LogFilter filter)
      : folder_(std::move(folder)), filter_(std::move(filter)) {}

  // Returns the lines written since the last call, safe for a terminal. A line
  // without a time begins with the name of its process. `at_end`: includes last
  // lines without an end.
  std::vector<std::string> Take(bool at_end);
  // Whether the filter has taken a file so far.
  bool has_files() const { return !files_.empty(); }

 private:
  struct File {
    explicit File(const std::string& path) : follower(path) {}
    LogFollower follower;
    absl::Time time = absl::InfinitePast();  // of the last line
  };

  const std::string folder_;
  const LogFilter filter_;
  std::map<std::string, File> files_;  // by process, as in "worker-1"
};

}  // namespace tributary
