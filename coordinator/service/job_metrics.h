#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/telemetry/metrics_writer.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The metrics of a job (docs/operations.md).
void WriteJobMetrics(const v1::JobStatusResponse& status,
                     const HistogramSnapshot& checkpoint_seconds,
                     MetricsWriter* writer);

// Where Prometheus finds the metrics of the coordinator and of every member
// that has some and is not finished: a list for file_sd_configs and
// http_sd_configs, with the labels `job` and `run`. `coordinator` is host:port
// of its own metrics, or empty.
std::string ScrapeTargetsJson(const v1::JobStatusResponse& status,
                              const std::string& coordinator);

}  // namespace tributary
