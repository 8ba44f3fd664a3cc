// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/telemetry/http_listener.h"

namespace tributary {

// Keeps a job's pages open until their regular readers have seen how the job
// ended. Prometheus keeps the last list of targets that it got, and would
// otherwise report processes that ended with their job as lost. A reader is
// regular if it states how often it reads, or comes again. Time is passed in.
class LastScrape {
 public:
  // How long the end of a job waits at most for the readers of one page. By
  // default, Prometheus reads a list of targets once a minute.
  static constexpr int64_t kLongestMicros = 65'000'000;

  // Call it when the page of metrics is read.
  void MetricsRead(const PageReader& reader, int64_t now_micros);
  // Call it when the list of targets is read. True: the answer must be empty.
  bool TargetsRead(const PageReader& reader, int64_t now_micros);
  // Call it when the job has ended. If it failed, the page of metrics must show
  // that before the list of targets becomes empty.
  void End(bool failed, int64_t now_micros);
  // Whether a regular reader has not seen the end yet.
  bool Awaited(int64_t now_micros) const;

 private:
  class Reader {
   public:
    // stated: the interval at which it says that it reads; 0: it does not say.
    void Read(int64_t stated, int64_t now, bool end);
    // since: when the end became visible.
    bool Awaited(int64_t since, int64_t now) const;
    bool HasGone(int64_t now) const { return now - last_ > 2 * kLongestMicros; }

   private:
    int64_t Interval() const;

    int64_t stated_ = 0;
    int64_t last_ = -1;                 // time of the last read
    std::array<int64_t, 3> gaps_ = {};  // between the last reads
    bool seen_ = false;
  };
  class Page {
   public:
    void Read(const PageReader& reader, int64_t now, bool end);
    bool Awaited(int64_t now) const;
    void EndIsShown(int64_t now) {
      if (since_ < 0) since_ = now;
    }

   private:
    std::map<std::string, Reader> readers_;
    int64_t since_ = -1;  // when the end became visible; -1: not yet
  };

  mutable absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  Page metrics_ ABSL_GUARDED_BY(mu_);
  Page targets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
