// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <thread>

#include "tests/fault/hostile/hostile_neighbours.h"

namespace tributary::testing {

// Ten times a second, until End, asks the processes of a job for their health,
// as a kubelet does, and the servers' pages whether workers share memory with
// them. A failure counts only if the same port answers again later, because
// processes end at the end of the job.
class HealthProbe {
 public:
  struct Result {
    int64_t asked = 0;  // on ports for health checks
    int64_t missed = 0;
    int64_t asked_pages = 0;  // on the attacked ports
    int64_t missed_pages = 0;
    int64_t longest_streak = 0;        // of failures on one port
    int64_t looks = 0;                 // at servers' pages while the job trains
    int64_t fewest_links = INT64_MAX;  // workers that share memory, of a server
  };

  explicit HealthProbe(const Neighbourhood& places)
      : places_(places), thread_([this] { Run(); }) {}
  ~HealthProbe() { End(); }

  Result End();
  // Whether it has looked at the servers' pages while the job trained.
  bool has_looked() const { return has_looked_; }

 private:
  void Run();
  void Ask(int port, int64_t* asked, int64_t* missed, int64_t* streak);
  void LookAtLinks();

  const Neighbourhood places_;
  std::map<int, int64_t> failing_;  // by port: failures since it last answered
  Result result_;
  std::atomic<bool> has_looked_{false};
  std::atomic<bool> over_{false};
  std::thread thread_;  // the last, because it uses the rest
};

}  // namespace tributary::testing
