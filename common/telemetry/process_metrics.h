#pragma once

#include "common/telemetry/metrics_writer.h"

namespace tributary {

// Memory, processor time, start and files of this process, under the names that
// Prometheus's own client libraries use. What the system does not tell is left
// out.
void WriteProcessMetrics(MetricsWriter* writer);

}  // namespace tributary
