// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/telemetry/metrics_writer.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The metrics of a job (docs/monitoring.md).
void WriteJobMetrics(const v1::JobStatusResponse& status,
                     const HistogramSnapshot& checkpoint_seconds,
                     MetricsWriter* writer);

// The addresses of the coordinator's and the members' metrics for Prometheus: a
// list for file_sd_configs and http_sd_configs, with the labels `job` and
// `run`. Members that serve no metrics or have finished are left out.
// `coordinator` is the host:port of its own metrics, or empty.
std::string ScrapeTargetsJson(const v1::JobStatusResponse& status,
                              const std::string& coordinator);

}  // namespace tributary
