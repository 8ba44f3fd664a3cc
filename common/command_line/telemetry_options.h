#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "common/telemetry/log.h"

namespace tributary {

// The log and metrics options of every program.
struct TelemetryOptions {
  LogOptions log;
  std::string metrics_listen;  // host:port; empty: no metrics
};

// Adds the flags --metrics-listen, --log-format and --log-level.
inline void AddTelemetryOptions(CLI::App& app, TelemetryOptions* options) {
  app.add_option("--metrics-listen", options->metrics_listen,
                 "HOST:PORT for /metrics and /healthz over HTTP;\n"
                 "default: none");
  const std::map<std::string, LogFormat> formats = {{"text", LogFormat::kText},
                                                    {"json", LogFormat::kJson}};
  app.add_option("--log-format", options->log.format,
                 "text, or json: one object a line; default: text")
      ->transform(CLI::CheckedTransformer(formats));
  app.add_option("--log-level", options->log.level,
                 "debug, info, warning or error")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
}

}  // namespace tributary
