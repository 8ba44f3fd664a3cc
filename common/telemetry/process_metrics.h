// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/telemetry/metrics_writer.h"

namespace tributary {

// Writes memory, processor time, start time and open files of this process,
// under the names that Prometheus's own client libraries use. Omits values that
// the system does not provide.
void WriteProcessMetrics(MetricsWriter* writer);

}  // namespace tributary
