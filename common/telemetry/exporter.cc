// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/exporter.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/host/address.h"
#include "common/status/status_macros.h"
#include "common/telemetry/log.h"
#include "common/telemetry/process_metrics.h"

namespace tributary {

Health HealthOf(const absl::Status& status, std::string waiting_for) {
  if (!status.ok()) return {false, std::string(status.message())};
  if (!waiting_for.empty()) waiting_for = "waits for " + waiting_for;
  return {true, std::move(waiting_for)};
}

// A page that links the others.
HttpAnswer LinksPage(const std::string& role,
                     const std::map<std::string, HttpListener::Page>& pages) {
  std::string body = absl::StrCat(
      "<!doctype html><html lang=\"en\"><meta "
      "charset=\"utf-8\"><title>tributary "
      "",
      role, "</title><h1>tributary ", role, "</h1><ul>");
  for (const auto& [path, page] : pages) {
    absl::StrAppend(&body, "<li><a href=\"", path, "\">", path, "</a></li>");
  }
  return {.content_type = "text/html; charset=utf-8",
          .body = absl::StrCat(body, "</ul></html>\n")};
}

Exporter::Handle::Handle(Handle&& other) noexcept
    : remove_(std::exchange(other.remove_, nullptr)) {}

Exporter::Handle& Exporter::Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    if (remove_) remove_();
    remove_ = std::exchange(other.remove_, nullptr);
  }
  return *this;
}

Exporter::Handle::~Handle() {
  if (remove_) remove_();
}

absl::StatusOr<std::unique_ptr<Exporter>> Exporter::Start(Options options) {
  std::unique_ptr<Exporter> exporter(new Exporter(std::move(options)));
  TRIBUTARY_RETURN_IF_ERROR(exporter->ListenForHealthChecks());
  const std::string& listen = exporter->options_.listen;
  if (listen.empty()) return exporter;
  HttpListener::Options http{.listen = listen,
                             .pages = exporter->options_.pages,
                             .on_read = exporter->options_.on_read,
                             .access = exporter->options_.access};
  Exporter* raw = exporter.get();
  http.pages["/metrics"] = [raw]() -> HttpAnswer {
    return {.content_type = MetricsWriter::kContentType,
            .body = raw->MetricsText()};
  };
  http.pages["/healthz"] = [raw] { return raw->AnswerHealth(); };
  if (http.pages.count("/") == 0) {
    http.pages["/"] = [links = LinksPage(exporter->options_.role, http.pages)] {
      return links;
    };
  }
  TRIBUTARY_ASSIGN_OR_RETURN(exporter->listener_,
                             HttpListener::Start(std::move(http)));
  exporter->address_ = ReachableAddress(listen, exporter->listener_->port());
  return exporter;
}

absl::Status Exporter::ListenForHealthChecks() {
  const std::string& listen = options_.access.health_listen;
  if (listen.empty()) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(listen));
  if (!IsLoopback(listen)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--health-listen must be a loopback address, such as 127.0.0.1:7091, "
        "got ",
        listen));
  }
  HttpListener::Options http{.listen = listen,
                             .access = {.token = options_.access.token}};
  http.pages["/healthz"] = [this] { return AnswerHealth(); };
  TRIBUTARY_ASSIGN_OR_RETURN(health_, HttpListener::Start(std::move(http)));
  return absl::OkStatus();
}

Exporter::~Exporter() {
  listener_.reset();
  health_.reset();
}

Exporter::Handle Exporter::AddSource(Source source) {
  absl::MutexLock lock(&mu_);
  sources_.push_back(std::move(source));
  Handle handle;
  handle.remove_ = [this, at = std::prev(sources_.end())] {
    absl::MutexLock lock(&mu_);
    sources_.erase(at);
  };
  return handle;
}

Exporter::Handle Exporter::AddHealthCheck(HealthCheck check) {
  absl::MutexLock lock(&mu_);
  checks_.push_back(std::move(check));
  Handle handle;
  handle.remove_ = [this, at = std::prev(checks_.end())] {
    absl::MutexLock lock(&mu_);
    checks_.erase(at);
  };
  return handle;
}

std::string Exporter::MetricsText() const {
  MetricsWriter writer;
  writer.Gauge("tributary_build_info",
               "1, with the version and the role of the process as labels.", 1,
               {{"version", kVersion}, {"role", options_.role}});
  writer.Gauge("tributary_healthy", "1 when /healthz says ok.",
               CheckHealth().ok ? 1 : 0);
  if (const auto& certificate_end = options_.access.certificate_end) {
    // The metric is absent while the file is being replaced.
    if (const absl::StatusOr<absl::Time> end = certificate_end(); end.ok()) {
      writer.Gauge("tributary_certificate_expiry_timestamp_seconds",
                   "End of this process's certificate, in seconds since 1970.",
                   absl::ToDoubleSeconds(*end - absl::UnixEpoch()));
    }
  }
  WriteLogMetrics(&writer);
  WriteProcessMetrics(&writer);
  absl::MutexLock lock(&mu_);
  for (const Source& source : sources_) source(&writer);
  return writer.Text();
}

Health Exporter::CheckHealth() const {
  absl::MutexLock lock(&mu_);
  Health health;
  for (const HealthCheck& check : checks_) {
    Health one = check();
    if (!one.ok) return one;
    if (health.sentence.empty()) health.sentence = std::move(one.sentence);
  }
  return health;
}

HttpAnswer Exporter::AnswerHealth() const {
  const Health health = CheckHealth();
  if (!health.ok) {
    return {.code = 503, .body = absl::StrCat(health.sentence, "\n")};
  }
  return {.body = health.sentence.empty()
                      ? "ok\n"
                      : absl::StrCat("ok\n", health.sentence, "\n")};
}

}  // namespace tributary
