// SPDX-License-Identifier: Apache-2.0
#include "worker/train/measure/run_measurement.h"

#include <cstdio>
#include <memory>

#include "common/cost/measurement.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"
#include "worker/train/measure/measure_compute.h"
#include "worker/train/measure/measure_links.h"

namespace tributary {

absl::Status RunMeasurement(const MeasurementOptions& options) {
  if (!options.serve_links.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<LinkProbeServer> server,
                               LinkProbeServer::Start(options.serve_links));
    printf("listening on port %d\n", server->port());
    fflush(stdout);
    server->Serve(options.serve_seconds > 0
                      ? absl::Seconds(options.serve_seconds)
                      : absl::InfiniteDuration());
    return absl::OkStatus();
  }
  if (!options.link.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(const LinkMeasurement link,
                               MeasureLink(options.link));
    printf("%s\n", ToJson(link).c_str());
    return absl::OkStatus();
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::JobSpec job,
                             ReadModelJob(options.job_path, options.overrides));
  TRIBUTARY_ASSIGN_OR_RETURN(const ComputeMeasurement compute,
                             MeasureCompute(job, options.rows));
  printf("%s\n", ToJson(compute).c_str());
  return absl::OkStatus();
}

}  // namespace tributary
