// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/telemetry_options.h"

#include <map>

namespace tributary {

void AddTelemetryOptions(CommandLine& command, TelemetryOptions* options) {
  command.AddOption("--metrics-listen", &options->metrics_listen,
                    "HOST:PORT for /metrics and /healthz over HTTP;\n"
                    "default: none");
  command
      .AddOption("--metrics-token-file", &options->metrics_token_file,
                 "file with the token that readers of these pages must show;\n"
                 "wanted, with --tls, if other machines reach the address,\n"
                 "unless there is --insecure-metrics")
      .TypeName("FILE");
  command.AddFlag("--insecure-metrics", &options->insecure_metrics,
                  "serve these pages in clear text to other machines, too");
  command.AddOption(
      "--health-listen", &options->health_listen,
      "loopback HOST:PORT for /healthz only, so that readers of\n"
      "the other pages cannot delay health checks; default: none");
  const std::map<std::string, LogFormat> formats = {{"text", LogFormat::kText},
                                                    {"json", LogFormat::kJson}};
  command.AddChoice("--log-format", &options->log.format, formats,
                    "json: one object per line; default: text");
  command
      .AddOption("--log-level", &options->log.level, "the least that is logged")
      .ShowDefault()
      .TypeOneOf({"debug", "info", "warning", "error"});
}

}  // namespace tributary
