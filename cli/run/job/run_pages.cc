// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/run_pages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status/status_macros.h"
#include "coordinator/page/status_page.h"
#include "coordinator/service/job_metrics.h"

namespace tributary {
namespace {

constexpr absl::Duration kScrapeLook = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<RunPages>> RunPages::Start(
    const Options& options, Coordinator* coordinator,
    const RunHistory* history) {
  std::unique_ptr<RunPages> pages(new RunPages(options, coordinator, history));
  TRIBUTARY_RETURN_IF_ERROR(pages->Serve());
  return pages;
}

absl::Status RunPages::Serve() {
  Exporter::Options options{.listen = options_.listen,
                            .role = "coordinator",
                            .access = options_.access};
  options.on_read = [this](const std::string& path, const PageReader& reader) {
    const int64_t now = options_.clock->NowMicros();
    if (path == "/metrics") last_scrape_.MetricsRead(reader, now);
    if (path == "/targets") over_ = last_scrape_.TargetsRead(reader, now);
  };
  options.pages["/targets"] = [this]() -> HttpAnswer {
    return {
        .content_type = "application/json",
        .body = over_ ? kNoTargets : ScrapeTargetsJson(Status(), address())};
  };
  options.pages["/"] = [page = StatusPage()] { return page; };
  options.pages["/status.json"] = [this] { return StatusAnswer(Status()); };
  options.pages["/history.json"] = [this] {
    return HistoryAnswer(history_, Status());
  };
  TRIBUTARY_ASSIGN_OR_RETURN(exporter_, Exporter::Start(std::move(options)));
  metrics_ = exporter_->AddSource(
      [this](MetricsWriter* writer) { coordinator_->WriteMetrics(writer); });
  health_ = exporter_->AddHealthCheck([this] {
    const v1::JobStatusResponse status = Status();
    return Health{status.phase() != v1::JOB_PHASE_FAILED, status.message()};
  });
  return absl::OkStatus();
}

std::string RunPages::url() const {
  return absl::StrCat(
      options_.access.own.certificate.empty() ? "http" : "https", "://",
      address());
}

std::string RunPages::Targets() {
  return ScrapeTargetsJson(Status(), address());
}

v1::JobStatusResponse RunPages::Status() {
  absl::MutexLock lock(&mu_);
  return last_status_ ? *last_status_ : coordinator_->control().Snapshot();
}

void RunPages::KeepStatus(const v1::JobStatusResponse& status) {
  metrics_ = Exporter::Handle();
  {
    absl::MutexLock lock(&mu_);
    last_status_ = status;
  }
  metrics_ = exporter_->AddSource([this](MetricsWriter* writer) {
    WriteJobMetrics(Status(), HistogramSnapshot(), writer);
  });
}

void RunPages::AwaitReader(bool failed, Console* console) {
  last_scrape_.End(failed, options_.clock->NowMicros());
  const auto awaited = [this] {
    return last_scrape_.Awaited(options_.clock->NowMicros());
  };
  if (!awaited()) return;
  console->Note(
      "waits at most two minutes until Prometheus has scraped the end of the "
      "job");
  while (awaited()) absl::SleepFor(kScrapeLook);
}

}  // namespace tributary
