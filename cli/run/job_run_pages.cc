// SPDX-License-Identifier: Apache-2.0
// What JobRun serves over HTTP.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/run/job_run.h"
#include "common/status/status_macros.h"
#include "coordinator/page/status_page.h"
#include "coordinator/service/job_metrics.h"

namespace tributary {
namespace {

constexpr absl::Duration kScrapeLook = absl::Milliseconds(20);

}  // namespace

std::string JobRun::pages_url() const {
  return absl::StrCat(options_.pages.own.certificate.empty() ? "http" : "https",
                      "://", metrics_address());
}

absl::Status JobRun::StartExporter() {
  Exporter::Options options{.listen = options_.metrics_listen,
                            .role = "coordinator",
                            .access = options_.pages};
  options.pages["/targets"] = [this]() -> HttpAnswer {
    const bool over = last_scrape_.TargetsRead(options_.clock->NowMicros());
    return {.content_type = "application/json",
            .body = over ? kNoTargets
                         : ScrapeTargetsJson(StatusNow(), metrics_address())};
  };
  options.pages["/"] = [page = StatusPage()] { return page; };
  options.pages["/status.json"] = [this] { return StatusAnswer(StatusNow()); };
  options.pages["/history.json"] = [this] {
    return HistoryAnswer(history_, StatusNow());
  };
  TRIBUTARY_ASSIGN_OR_RETURN(exporter_, Exporter::Start(std::move(options)));
  handles_.push_back(exporter_->AddSource([this](MetricsWriter* writer) {
    last_scrape_.MetricsRead(options_.clock->NowMicros());
    coordinator_->WriteMetrics(writer);
  }));
  handles_.push_back(exporter_->AddHealthCheck([this] {
    const v1::JobStatusResponse status = StatusNow();
    return Health{status.phase() != v1::JOB_PHASE_FAILED, status.message()};
  }));
  return absl::OkStatus();
}

v1::JobStatusResponse JobRun::StatusNow() {
  absl::MutexLock lock(&last_mu_);
  return last_status_ ? *last_status_ : coordinator_->control().Snapshot();
}

void JobRun::KeepLastStatus(const v1::JobStatusResponse& status) {
  Exporter::Handle& source = handles_.front();  // the one that StartExporter
  source = Exporter::Handle();                  // has added
  {
    absl::MutexLock lock(&last_mu_);
    last_status_ = status;
  }
  source = exporter_->AddSource([this](MetricsWriter* writer) {
    last_scrape_.MetricsRead(options_.clock->NowMicros());
    WriteJobMetrics(StatusNow(), HistogramSnapshot(), writer);
  });
}

void JobRun::AwaitLastScrape() {
  registered_.reset();
  claim_.reset();
  last_scrape_.End(failed(), options_.clock->NowMicros());
  const auto awaited = [this] {
    return last_scrape_.Awaited(options_.clock->NowMicros());
  };
  if (!awaited()) return;
  console_.Note(
      "waits up to a minute until Prometheus has scraped the end of the job");
  while (awaited()) absl::SleepFor(kScrapeLook);
}

}  // namespace tributary
