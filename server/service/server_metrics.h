// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/telemetry/metrics_writer.h"
#include "server/service/calls/rank_waits.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// Writes the metrics of a server that has a shard (docs/monitoring.md).
void WriteServerMetrics(const v1::ServerStatusResponse& status,
                        const RankWaits& waits, MetricsWriter* writer);

}  // namespace tributary
