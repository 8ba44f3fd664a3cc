// SPDX-License-Identifier: Apache-2.0
// The staleness of the weights that workers read while one worker is slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"

namespace tributary {
namespace {

class StalenessTest : public FaultTest {
 protected:
  // The maximum staleness of all pulls, as a server reports it at its end.
  static std::string MostStale(const std::string& output) {
    std::smatch match;
    const bool found = std::regex_search(
        output, match,
        std::regex("weights were read ([0-9]+) times, at most (.*) stale"));
    EXPECT_TRUE(found) << output;
    if (!found) return "";
    // Each of 3 workers reads at least one block of this server in each of
    // 40 x 11 steps.
    EXPECT_GE(std::stoi(match[1]), 3 * 440);
    return match[2];
  }
};

TEST_F(StalenessTest, NoPullIsStalerThanTheBoundWhileOneWorkerIsSlow) {
  EditJob("workers: 2", "workers: 3");
  // Contributions are applied one by one here, so the rate is lower.
  EditJob("learning_rate: 0.05, momentum: 0.9", "learning_rate: 0.005");
  EditJob("cluster:",
          "strategy: {parameter_server: {sync: {ssp: {staleness: 2}}}}\n"
          "cluster:");
  std::string address;
  auto coordinator = Coordinate("run", &address);
  auto server0 = Start({"tributary-server", "--coordinator", address});
  auto server1 = Start({"tributary-server", "--coordinator", address});
  std::vector<std::unique_ptr<RunningProcess>> workers;
  workers.push_back(Start(
      {"tributary-worker", "--coordinator", address, "--slow-down", "20"}));
  for (int i = 0; i < 2; ++i) {
    workers.push_back(Start({"tributary-worker", "--coordinator", address}));
  }
  EXPECT_EQ(coordinator->Wait(kSoon), 0) << coordinator->output();
  for (auto& worker : workers) {
    EXPECT_EQ(worker->Wait(kSoon), 0) << worker->output();
  }
  for (auto* server : {&server0, &server1}) {
    EXPECT_EQ((*server)->Wait(kSoon), 0) << (*server)->output();
    // Fast workers reach the bound and do not exceed it.
    EXPECT_EQ(MostStale((*server)->output()), "2 steps");
  }
}

}  // namespace
}  // namespace tributary
