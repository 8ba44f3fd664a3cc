// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tributary {

// Keeps a job's pages open until their regular reader has seen how the job
// ended. Prometheus keeps the last list of targets that it got. Without this it
// would report processes that ended with their job as lost. Time is passed in.
class LastScrape {
 public:
  // How long the end of a job waits at most for a reader of one page.
  static constexpr int64_t kLongestMicros = 30'000'000;

  // The page of metrics is read.
  void MetricsRead(int64_t now_micros) {
    absl::MutexLock lock(&mu_);
    metrics_.Read(now_micros, ended_);
    if (ended_ && targets_.since < 0) targets_.since = now_micros;
  }

  // The list of targets is read. True: it must be empty now.
  bool TargetsRead(int64_t now_micros) {
    absl::MutexLock lock(&mu_);
    const bool empty = ended_ && !metrics_.Awaited(now_micros);
    targets_.Read(now_micros, empty);
    return empty;
  }

  // The job has ended. If it failed, the page of metrics must show that before
  // the list of targets becomes empty.
  void End(bool failed, int64_t now_micros) {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    if (failed) metrics_.since = now_micros;
    if (!metrics_.Awaited(now_micros)) targets_.since = now_micros;
  }

  // Whether a regular reader has not seen the end yet.
  bool Awaited(int64_t now_micros) const {
    absl::MutexLock lock(&mu_);
    return metrics_.Awaited(now_micros) || targets_.Awaited(now_micros);
  }

 private:
  struct Reader {
    int64_t last = -1;     // when it came
    int64_t interval = 0;  // between the last two times
    int64_t since = -1;    // when the end could be seen
    bool seen = false;

    void Read(int64_t now, bool end) {
      if (last >= 0) interval = now - last;
      last = now;
      seen = seen || end;
    }
    bool Awaited(int64_t now) const {
      if (since < 0 || seen || interval == 0) return false;
      return since - last <= 2 * interval &&
             now < since + std::min(2 * interval, kLongestMicros);
    }
  };

  mutable absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  Reader metrics_ ABSL_GUARDED_BY(mu_);
  Reader targets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
