#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/telemetry/log_line.h"
#include "common/telemetry/metrics_writer.h"

namespace tributary {

// How a process keeps its log; every program sets it up once, at its start.
struct LogOptions {
  LogFormat format = LogFormat::kText;
  std::string level = "info";  // debug, info, warning, error: this and above
  std::string role;            // in every line, and in the process's metrics
  bool standard_error = true;
  std::string file;  // beside it, or instead; empty: none
};

// What spdlog's functions write from here on. InvalidArgument: the level.
// Unavailable: the file cannot be opened, and why.
absl::Status SetUpLog(const LogOptions& options);

// The shard or rank, in every line from here on.
void SetLogIndex(int64_t index);

// Until SetUpLog, for a program that does not know its log file yet.
void SilenceLog();

// How many warnings and errors were said, whatever the level shown.
void WriteLogMetrics(MetricsWriter* writer);

}  // namespace tributary
