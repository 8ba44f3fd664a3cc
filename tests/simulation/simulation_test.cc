// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <string>

#include "spdlog/spdlog.h"
#include "tests/simulation/job/scenario.h"

namespace tributary::simulation {
namespace {

constexpr uint64_t kFixedSeeds = TRIBUTARY_FIXED_SEEDS;

class SimulationTest : public ::testing::Test {
 protected:
  SimulationTest() { spdlog::set_level(spdlog::level::off); }

  static void ExpectPasses(uint64_t seed, FaultCounts* faults = nullptr) {
    const Scenario scenario = DrawScenario(seed);
    const Outcome outcome = Simulate(scenario);
    EXPECT_EQ(outcome.violation, "")
        << scenario.Text() << "\nreplay: simulate --seed " << seed
        << " --trace";
    if (faults == nullptr) return;
    for (const auto& [fault, times] : outcome.faults) (*faults)[fault] += times;
  }
};

// A fault that never happened proves nothing.
TEST_F(SimulationTest, FixedSeedsKeepEveryInvariantWhileEverythingGoesWrong) {
  FaultCounts faults;
  for (uint64_t seed = 1; seed <= kFixedSeeds && !HasFailure(); ++seed) {
    ExpectPasses(seed, &faults);
  }
  std::set<std::string> wanted = {
      "answer damaged",  "contribution repeated", "former holder called",
      "message cut off", "request damaged",       "message delayed",
      "message lost",    "message repeated",      "state not saved"};
  for (int kind = 0; kind <= static_cast<int>(Mishap::Kind::kDamagedCheckpoint);
       ++kind) {
    wanted.insert(NameOf(static_cast<Mishap::Kind>(kind)));
  }
  for (const std::string& fault : wanted) EXPECT_GT(faults[fault], 0) << fault;
}

TEST_F(SimulationTest, FreshSeedsKeepEveryInvariant) {
  const auto start = std::chrono::system_clock::now();
  auto seed = static_cast<uint64_t>(start.time_since_epoch().count());
  const uint64_t first = seed;
  std::printf("fresh seeds from %llu\n",
              static_cast<unsigned long long>(first));
  std::fflush(stdout);  // a sanitizer that ends the process prints no more
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < until && !HasFailure()) {
    ExpectPasses(seed++);
  }
  RecordProperty("seeds", std::to_string(seed - first));
  std::printf("%llu of them\n", static_cast<unsigned long long>(seed - first));
}

TEST_F(SimulationTest, ASeedGivesTheSameRunWatchedOrNot) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario scenario = DrawScenario(seed);
    const Outcome once = Simulate(scenario);
    int64_t lines = 0;
    const Outcome again =
        Simulate(scenario, [&lines](const std::string&) { ++lines; });
    EXPECT_EQ(once.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(once.events, again.events) << "seed " << seed;
    EXPECT_EQ(once.end, again.end) << "seed " << seed;
    EXPECT_GT(lines, 0);
  }
}

}  // namespace
}  // namespace tributary::simulation
