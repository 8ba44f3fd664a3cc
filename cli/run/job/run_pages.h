// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/run/job/last_scrape.h"
#include "cli/terminal/console.h"
#include "common/telemetry/exporter.h"
#include "coordinator/page/run_history.h"
#include "coordinator/service/coordinator.h"

namespace tributary {

// Serves a run over HTTP: metrics, health, the status page and the targets of
// Prometheus. After the end of the job it still serves the last status.
class RunPages {
 public:
  struct Options {
    std::string listen;  // host:port; empty: nothing is served
    PageAccess access;
    const Clock* clock = &Clock::Real();
  };

  // An empty list of targets.
  static constexpr char kNoTargets[] = "[]\n";

  // `history` must outlive this object, `coordinator` only until KeepStatus.
  static absl::StatusOr<std::unique_ptr<RunPages>> Start(
      const Options& options, Coordinator* coordinator,
      const RunHistory* history);

  // host:port; empty: nothing is served.
  const std::string& address() const { return exporter_->address(); }
  // "http://host:port", or https.
  std::string url() const;
  // The job's processes as targets of Prometheus.
  std::string Targets();

  // Call it when the job has ended with this status.
  void KeepStatus(const v1::JobStatusResponse& status);
  // Lets regular readers of the pages see the end (LastScrape).
  void AwaitReader(bool failed, Console* console);

 private:
  RunPages(const Options& options, Coordinator* coordinator,
           const RunHistory* history)
      : options_(options), coordinator_(coordinator), history_(*history) {}

  absl::Status Serve();
  v1::JobStatusResponse Status();

  const Options options_;
  Coordinator* const coordinator_;
  const RunHistory& history_;
  LastScrape last_scrape_;
  bool over_ = false;  // for the reader of targets being answered
  absl::Mutex mu_;
  std::optional<v1::JobStatusResponse> last_status_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Exporter> exporter_;
  Exporter::Handle metrics_;  // callbacks that use this object
  Exporter::Handle health_;
};

}  // namespace tributary
