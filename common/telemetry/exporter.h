// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/telemetry/http_listener.h"
#include "common/telemetry/metrics_writer.h"

namespace tributary {

// The health of a process, shown on /healthz.
struct Health {
  bool ok = true;
  std::string sentence;  // the error; if ok, what the process waits for, or ""
};

// For an error: not ok, with the status's message. Otherwise: ok, with "waits
// for" and `waiting_for`, if that is not empty.
Health HealthOf(const absl::Status& status, std::string waiting_for);

// Serves a process's state over HTTP: /metrics, /healthz and further pages.
// Each request calls the sources and checks again, on the listener's thread.
// They must be callable from any thread; they are called one at a time.
class Exporter {
 public:
  using Source = std::function<void(MetricsWriter*)>;
  using HealthCheck = std::function<Health()>;

  struct Options {
    std::string listen;  // host:port; port 0: any free one; empty: no listener
    std::string role;    // "server", for tributary_build_info
    // Further pages, by path. Without a page "/", that path links all pages.
    std::map<std::string, HttpListener::Page> pages;
    // As in HttpListener::Options.
    std::function<void(const std::string& path, const PageReader& reader)>
        on_read;
    PageAccess access;
  };

  // Its destructor unregisters a source or a check, and waits while that is
  // being called. The handle must not outlive the exporter.
  class Handle {
   public:
    Handle() = default;
    Handle(Handle&& other) noexcept;
    Handle& operator=(Handle&& other) noexcept;
    ~Handle();

   private:
    friend class Exporter;
    std::function<void()> remove_;
  };

  // Without a listener everything else works, but no request ever comes. Errors
  // as in HttpListener::Start. InvalidArgument also: the port for health checks
  // is open to other machines.
  static absl::StatusOr<std::unique_ptr<Exporter>> Start(Options options);
  ~Exporter();

  // The host:port under which others reach the listener; empty without one.
  const std::string& address() const { return address_; }
  // The port of PageAccess::health_listen; 0 without it.
  int health_port() const { return health_ ? health_->port() : 0; }

  [[nodiscard]] Handle AddSource(Source source);
  // The process is healthy when all checks are ok. The first failed check gives
  // the sentence.
  [[nodiscard]] Handle AddHealthCheck(HealthCheck check);

  // The current contents of the pages.
  std::string MetricsText() const;
  Health CheckHealth() const;

 private:
  explicit Exporter(Options options) : options_(std::move(options)) {}
  HttpAnswer AnswerHealth() const;
  absl::Status ListenForHealthChecks();

  const Options options_;
  mutable absl::Mutex mu_;  // held while sources and checks are called
  std::list<Source> sources_ ABSL_GUARDED_BY(mu_);
  std::list<HealthCheck> checks_ ABSL_GUARDED_BY(mu_);
  std::string address_;
  // The last members, because their threads use the others.
  std::unique_ptr<HttpListener> health_;
  std::unique_ptr<HttpListener> listener_;
};

}  // namespace tributary
