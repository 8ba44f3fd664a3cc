// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/telemetry/log_line.h"
#include "common/telemetry/metrics_writer.h"

namespace tributary {

// How a process logs. Every program sets this up once, at its start.
struct LogOptions {
  LogFormat format = LogFormat::kText;
  std::string level = "info";  // least level shown: debug, info, warning, error
  std::string role;            // shown in every line and in metrics
  bool standard_error = true;
  std::string file;  // in addition to stderr, or instead; empty: none
};

// Configures spdlog's default logger. InvalidArgument: the level is unknown.
// Unavailable: the file cannot be opened; the text says why.
absl::Status SetUpLog(const LogOptions& options);

// Sets the shard or rank, which every later line shows.
void SetLogIndex(int64_t index);

// Silences the log until SetUpLog, for a program that does not know its log
// file yet.
void SilenceLog();

// Writes how many warnings and errors were logged, including those that the
// level hides.
void WriteLogMetrics(MetricsWriter* writer);

}  // namespace tributary
