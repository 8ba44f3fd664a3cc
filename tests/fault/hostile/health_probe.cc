// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/hostile/health_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/testing/http/http_get.h"

namespace tributary::testing {
namespace {

using nlohmann::json;

// Whether some page says that the job's steps have begun and have not ended.
bool Trains(const std::vector<int>& pages) {
  for (const int port : pages) {
    const json status =
        json::parse(HttpGet(port, "/status.json").body, nullptr, false);
    if (!status.is_object()) continue;
    return status.value("step", 0) > 0 &&
           status.value("step", 0) < status.value("total_steps", 0);
  }
  return false;
}

}  // namespace

HealthProbe::Result HealthProbe::End() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
  return result_;
}

void HealthProbe::Run() {
  while (!over_) {
    LookAtLinks();
    for (const int port : places_.health_checks) {
      Ask(port, &result_.asked, &result_.missed, &result_.longest_streak);
    }
    for (const int port : places_.pages) {
      Ask(port, &result_.asked_pages, &result_.missed_pages,
          &result_.longest_streak);
    }
    Pause(100);
  }
}

void HealthProbe::Ask(int port, int64_t* asked, int64_t* missed,
                      int64_t* streak) {
  int64_t& failing = failing_[port];
  ++*asked;
  if (HttpGet(port, "/healthz").code != 200) {
    ++failing;
    return;
  }
  *missed += failing;
  *streak = std::max(*streak, failing);
  failing = 0;
}

// Reads values between two checks that the job trains: they are of that job.
void HealthProbe::LookAtLinks() {
  static const std::regex workers(
      R"(\ntributary_server_shared_memory_workers\{[^}]*\} ([0-9]+))");
  if (!Trains(places_.pages)) return;
  int64_t fewest = INT64_MAX;
  for (const int port : places_.pages) {
    const std::string page = HttpGet(port, "/metrics").body;
    std::smatch found;
    if (std::regex_search(page, found, workers)) {
      fewest = std::min<int64_t>(fewest, std::stoll(found[1]));
    }
  }
  if (fewest == INT64_MAX || !Trains(places_.pages)) return;
  ++result_.looks;
  has_looked_ = true;
  result_.fewest_links = std::min(result_.fewest_links, fewest);
}

}  // namespace tributary::testing
