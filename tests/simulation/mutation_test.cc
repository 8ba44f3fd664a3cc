// SPDX-License-Identifier: Apache-2.0
// Tests the simulator itself: common/base/mutation.h plants defects in the
// product, and the simulator must find each of them within a given number of
// seeds.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary::simulation {
namespace {

struct Mutation {
  const char* name;
  int max_seeds;
  // First seed to search: shortly before the seed that finds the defect today,
  // so that the test is short. docs/failures.md has the numbers from seed 1 on.
  int first = 1;
};

testing::ProcessResult SimulateMutated(const std::string& mutation, int first,
                                       int max_seeds) {
  setenv("TRIBUTARY_MUTATION", mutation.c_str(), 1);
  testing::ProcessResult result = testing::RunProcess(
      {testing::Program("simulate"), "--seeds",
       absl::StrCat(first, "..", first + max_seeds - 1), "--last", "0"});
  unsetenv("TRIBUTARY_MUTATION");
  return result;
}

// Limits of about ten times the seeds needed.
constexpr Mutation kMutations[] = {
    {"open-repetition-counts", 100},
    {"late-repetition-counts", 100},
    {"equal-weights", 100},
    {"no-incarnation-fence", 3000},
    {"no-epoch-fence", 100},
    {"no-fence-at-clock", 5000},
    {"fences-begin-at-zero", 1000},
    {"committed-forgotten", 1000},
    {"closed-step-takes-more", 5000},
    {"no-wake-after-push", 100},
    {"no-wake-after-clipped-step", 100},
    {"no-wake-after-first-weights", 10000, 5275},
    {"staleness-plus-one", 300},
    {"early-answer", 100},
    {"exact-pull-gets-present", 800},
    {"previous-dropped", 300},
    {"newest-weights-at-start", 1000},
    {"late-cut", 100},
    {"skips-forgotten", 3000},
    {"cut-before-all-stand", 1000},
    {"newer-plan-ignored", 300},
    {"old-report-counts", 20000},
    {"restore-point-before-manifest", 10000, 1325},
    {"header-unchecked", 300},
    {"gradient-unchecked", 300},
    {"answer-unchecked", 300},
    {"sums-unchecked", 20000, 2425},
    {"final-weights-unchecked", 10000, 1000},
    {"version-not-noted", 300},
    {"catch-up-waits", 100000, 26275},
    {"state-seen-before-saved", 20000, 1375},
    {"damage-is-final", 300},
    {"refusal-is-final", 100},
    {"lost-residual-ignored", 4000},
    {"residual-not-restored", 5000},
    {"encoded-for-each-try", 5000},
    {"residuals-not-awaited", 4000, 425},
};

TEST(MutationTest, TheSimulatorFindsEveryPlantedDefect) {
  std::printf("| planted | seeds | seconds | it says |\n");
  for (const Mutation& mutation : kMutations) {
    const auto begin = std::chrono::steady_clock::now();
    const testing::ProcessResult result =
        SimulateMutated(mutation.name, mutation.first, mutation.max_seeds);
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    std::smatch found;
    const std::regex sentence("seed ([0-9]+) (FAILED: |)(ends with .*|.*)");
    if (!std::regex_search(result.output, found, sentence)) {
      ADD_FAILURE() << mutation.max_seeds << " seeds do not find "
                    << mutation.name << "\n"
                    << result.output;
      continue;
    }
    EXPECT_NE(result.exit_code, 0) << mutation.name;
    std::printf("| %s | %s | %.1f | %s |\n", mutation.name,
                found[1].str().c_str(), seconds.count(),
                found[3].str().c_str());
  }
}

// Without a defect the simulator must find nothing.
TEST(MutationTest, WithoutADefectEverySeedPasses) {
  const testing::ProcessResult result = SimulateMutated("", 1, 200);
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

}  // namespace
}  // namespace tributary::simulation
