// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "common/command_line/parse_command_line.h"
#include "common/telemetry/log.h"

namespace tributary {

// The log and metrics options of every program.
struct TelemetryOptions {
  LogOptions log;
  std::string metrics_listen;  // host:port; empty: no metrics
  std::string metrics_token_file;
  bool insecure_metrics = false;  // open, in clear text, to other machines
};

// Adds the flags --metrics-listen, --log-format and --log-level.
inline void AddTelemetryOptions(CLI::App& app, TelemetryOptions* options) {
  app.add_option("--metrics-listen", options->metrics_listen,
                 "HOST:PORT for /metrics and /healthz over HTTP;\n"
                 "default: none");
  app.add_option("--metrics-token-file", options->metrics_token_file,
                 "file with the token that readers of these pages must show;\n"
                 "wanted, with --tls, if other machines reach the address,\n"
                 "unless there is --insecure-metrics")
      ->type_name("FILE");
  app.add_flag("--insecure-metrics", options->insecure_metrics,
               "serve these pages in clear text to other machines, too");
  const std::map<std::string, LogFormat> formats = {{"text", LogFormat::kText},
                                                    {"json", LogFormat::kJson}};
  AddChoice(app, "--log-format", &options->log.format, formats,
            "json: one object per line; default: text");
  app.add_option("--log-level", options->log.level, "the least that is logged")
      ->capture_default_str()
      ->type_name("debug|info|warning|error")
      ->check(
          CLI::IsMember({"debug", "info", "warning", "error"}).description(""));
}

}  // namespace tributary
