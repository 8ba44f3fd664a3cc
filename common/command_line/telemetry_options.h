// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/command_line/command_line.h"
#include "common/telemetry/log.h"

namespace tributary {

// The log and metrics options of every program.
struct TelemetryOptions {
  LogOptions log;
  std::string metrics_listen;  // host:port; empty: no metrics
  std::string metrics_token_file;
  bool insecure_metrics = false;  // open, in clear text, to other machines
  std::string health_listen;      // PageAccess::health_listen
};

// Adds the flags of TelemetryOptions and of LogOptions.
void AddTelemetryOptions(CommandLine& command, TelemetryOptions* options);

}  // namespace tributary
