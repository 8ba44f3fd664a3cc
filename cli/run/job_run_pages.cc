// SPDX-License-Identifier: Apache-2.0
// What JobRun serves over HTTP.
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/run/job_run.h"
#include "common/status/status_macros.h"
#include "coordinator/page/status_page.h"
#include "coordinator/service/job_metrics.h"

namespace tributary {

std::string JobRun::pages_url() const {
  return absl::StrCat(options_.pages.own.certificate.empty() ? "http" : "https",
                      "://", metrics_address());
}

absl::Status JobRun::StartExporter() {
  Exporter::Options options{.listen = options_.metrics_listen,
                            .role = "coordinator",
                            .access = options_.pages};
  options.pages["/targets"] = [this]() -> HttpAnswer {
    return {.content_type = "application/json",
            .body = ScrapeTargetsJson(coordinator_->control().Snapshot(),
                                      metrics_address())};
  };
  options.pages["/"] = [page = StatusPage()] { return page; };
  options.pages["/status.json"] = [this] {
    return StatusAnswer(coordinator_->control().Snapshot());
  };
  options.pages["/history.json"] = [this] {
    return HistoryAnswer(history_, coordinator_->control().Snapshot());
  };
  TRIBUTARY_ASSIGN_OR_RETURN(exporter_, Exporter::Start(std::move(options)));
  handles_.push_back(exporter_->AddSource(
      [this](MetricsWriter* writer) { coordinator_->WriteMetrics(writer); }));
  handles_.push_back(exporter_->AddHealthCheck([this] {
    const v1::JobStatusResponse status = coordinator_->control().Snapshot();
    return Health{status.phase() != v1::JOB_PHASE_FAILED, status.message()};
  }));
  return absl::OkStatus();
}

}  // namespace tributary
