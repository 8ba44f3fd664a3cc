// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tributary {

enum class LogFormat { kText, kJson };

// One log message of one process.
struct LogRecord {
  absl::Time time;
  absl::string_view level;  // "info"
  absl::string_view role;   // "server"; empty: not shown
  int64_t index = -1;       // shard or rank; negative: none, or not known yet
  absl::string_view message;
};

// Formats a record as one line, including the line end. Times are UTC, RFC 3339
// with microseconds.
//   kText  2026-11-21T08:23:08.123456Z info server-0: serving shard 0 of 2
//   kJson  {"time":"2026-11-21T08:23:08.123456Z","level":"info",
//          "role":"server","index":0,"message":"serving shard 0 of 2"}
// A JSON record is one line whatever the message contains. Bytes that are not
// UTF-8 become U+FFFD.
std::string FormatLogLine(LogFormat format, const LogRecord& record);

// The message of a line in either format, without the line end. Returns any
// other line unchanged.
std::string MessageOf(absl::string_view line);

// The time of a line in either format; nullopt: it is not a line of a log.
std::optional<absl::Time> TimeOfLine(absl::string_view line);

}  // namespace tributary
