// SPDX-License-Identifier: Apache-2.0
// A worker is lost with reports that nobody has received.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using LostReportsTest = FaultTest;

testing::ProcessResult Tributary(std::vector<std::string> words) {
  words.insert(words.begin(), testing::Program("tributary"));
  return testing::RunProcess(words);
}

// Steps with a lost report have losses without the lost worker's samples, so
// these losses prove nothing about the run's arithmetic.
TEST_F(LostReportsTest, AreNoDifferenceBetweenTwoRuns) {
  const std::vector<std::string> words = {"--set", "checkpoint.every_steps=10"};
  ASSERT_EQ(Train("whole", words)->Wait(kSoon), 0);
  SetFailpoints("worker-answered:100:kill");
  auto train = Train("run", words);
  ASSERT_EQ(train->Wait(kSoon), 0) << train->output();
  SetFailpoints("");
  ASSERT_EQ(Summary("run")["lost"]["workers"], 1);
  int lost_step = 0;
  std::istringstream lines(Read("run/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    if (record.value("lost_reports", 0) == 1) lost_step = record["step"];
  }
  ASSERT_GT(lost_step, 0) << "all reports arrived";

  const auto compared = Tributary({"bisect", Path("whole"), Path("run")});
  EXPECT_EQ(compared.exit_code, 0) << compared.output;
  EXPECT_THAT(compared.output, HasSubstr("are equal in all"));
  const auto replayed =
      Tributary({"replay", Path("run"), "--step", absl::StrCat(lost_step)});
  EXPECT_EQ(replayed.exit_code, 2) << replayed.output;
  EXPECT_THAT(replayed.output,
              HasSubstr(absl::StrCat("no whole loss of step ", lost_step)));
}

}  // namespace
}  // namespace tributary
