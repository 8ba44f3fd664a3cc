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

// What a process says of itself on /healthz.
struct Health {
  bool ok = true;
  std::string sentence;  // not ok: what is wrong; ok: what it waits for, or ""
};

// Not ok with the status's text, or ok and what it waits for.
Health HealthOf(const absl::Status& status, std::string waiting_for);

// What a process shows of itself over HTTP: /metrics, /healthz, further pages.
// Everything is asked for at the moment of the request, on the listener's
// threads, so sources must be safe for any thread; one is asked at a time.
class Exporter {
 public:
  using Source = std::function<void(MetricsWriter*)>;
  using HealthCheck = std::function<Health()>;

  struct Options {
    std::string listen;  // host:port, port 0: any free one; empty: no listener
    std::string role;    // "server", for tributary_build_info
    std::map<std::string, HttpListener::Page> pages;  // by path
  };

  // Takes a source or a check away when it ends; waits until it is not being
  // asked. Must not outlive the exporter.
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

  // Without a listener all else works and nobody is ever asked. Errors as
  // HttpListener::Start.
  static absl::StatusOr<std::unique_ptr<Exporter>> Start(Options options);
  ~Exporter();

  // host:port as others reach the listener; empty without one.
  const std::string& address() const { return address_; }

  [[nodiscard]] Handle AddSource(Source source);
  // All checks must be content; the first that is not gives the sentence.
  [[nodiscard]] Handle AddHealthCheck(HealthCheck check);

  // What the pages hold now.
  std::string MetricsText() const;
  Health CheckHealth() const;

 private:
  explicit Exporter(Options options) : options_(std::move(options)) {}
  HttpAnswer AnswerHealth() const;

  const Options options_;
  mutable absl::Mutex mu_;  // held while sources and checks are asked
  std::list<Source> sources_ ABSL_GUARDED_BY(mu_);
  std::list<HealthCheck> checks_ ABSL_GUARDED_BY(mu_);
  std::string address_;
  std::unique_ptr<HttpListener> listener_;  // last: its threads use the rest
};

}  // namespace tributary
