// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fault/fault_test.h"
#include "tests/testing/http/http_get.h"

namespace tributary {

namespace fs = std::filesystem;
using nlohmann::json;

// A job of daemons whose coordinator is replaced by one with the same command.
class TakeoverTest : public FaultTest {
 protected:
  std::vector<std::string> CoordinatorAt(const std::string& address) {
    return {"tributary-coordinator",
            "--job",
            "job.yaml",
            "--run-dir",
            "run",
            "--listen",
            address};
  }

  // Starts the members of the current job.yaml; workers have these options.
  std::vector<std::unique_ptr<RunningProcess>> StartMembers(
      const std::string& address, int servers, int workers,
      const std::vector<std::string>& options = {}) {
    std::vector<std::unique_ptr<RunningProcess>> members;
    for (int i = 0; i < servers; ++i) {
      members.push_back(Start({"tributary-server", "--coordinator", address,
                               "--metrics-listen", "127.0.0.1:0"}));
    }
    std::vector<std::string> worker = {"tributary-worker", "--coordinator",
                                       address};
    worker.insert(worker.end(), options.begin(), options.end());
    for (int i = 0; i < workers; ++i) members.push_back(Start(worker));
    return members;
  }

  // Runs job.yaml to its end under coordinators with these failpoints; a killed
  // coordinator is restarted with the same command.
  void RunToTheEnd(const std::string& failpoints, int servers, int workers) {
    SetFailpoints(failpoints);
    std::string address;
    auto coordinator = Coordinate("run", &address);
    SetFailpoints("");
    auto members = StartMembers(address, servers, workers);
    int kills = 0;
    int exit_code = coordinator->Wait(kSoon);
    while (exit_code == 128 + SIGKILL) {
      ++kills;
      SetFailpoints(failpoints);
      coordinator = Start(CoordinatorAt(address));
      SetFailpoints("");
      exit_code = coordinator->Wait(kSoon);
    }
    EXPECT_EQ(exit_code, 0) << coordinator->output();
    for (auto& member : members) {
      EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
    }
    EXPECT_EQ(kills, std::count(failpoints.begin(), failpoints.end(), ',') + 1)
        << failpoints;
  }

  // Expects that summary and metrics cover the whole job, whatever the number
  // of coordinators.
  void ExpectWhole(int64_t steps, size_t evaluations) {
    const json summary = Summary("run");
    EXPECT_EQ(summary["status"], "done");
    EXPECT_EQ(summary["steps"], steps);
    EXPECT_EQ(summary["evaluations"].size(), evaluations);
    std::istringstream lines(Read("run/metrics.jsonl"));
    int64_t step = 0, samples = 0;
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      EXPECT_EQ(record["step"], ++step);
      samples += record["samples"].get<int64_t>();
    }
    EXPECT_EQ(step, steps);
    EXPECT_EQ(summary["samples"], samples);
    EXPECT_FALSE(fs::exists(Path("run/coordinator.lock")));
  }

  // Returns a page of the coordinator whose metrics prometheus-targets.json
  // names; an empty object if there is none.
  json PageOf(const std::string& run, const std::string& path) {
    const json targets =
        json::parse(Read(run + "/prometheus-targets.json"), nullptr, false);
    if (!targets.is_array()) return json::object();
    for (const json& group : targets) {
      if (group["labels"]["job"] != "tributary-coordinator") continue;
      const std::string address = group["targets"][0];
      const int port = std::stoi(address.substr(address.rfind(':') + 1));
      const json page =
          json::parse(testing::HttpGet(port, path).body, nullptr, false);
      if (page.is_object()) return page;
    }
    return json::object();
  }

  // The bytes of every file of the run, except the lock.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(Path("run"))) {
      const std::string name = fs::relative(entry.path(), folder()).string();
      if (!entry.is_regular_file() || name == "run/coordinator.lock") continue;
      contents[name] = Read(name);
    }
    return contents;
  }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(Path("run"))) {
      names.insert(entry.path().string());
    }
    return names;
  }
};

}  // namespace tributary
