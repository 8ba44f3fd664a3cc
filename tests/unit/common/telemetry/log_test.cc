// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

class LogTest : public testing::TemporaryFolderTest {
 protected:
  LogOptions Options() const {
    return {.format = LogFormat::kJson,
            .role = "worker",
            .standard_error = false,
            .file = Path("log")};
  }
  ~LogTest() override {
    SetLogIndex(-1);
    SilenceLog();
  }
};

TEST_F(LogTest, EveryLineIsAnObjectWithRoleAndIndex) {
  TRIBUTARY_EXPECT_OK(SetUpLog(Options()));
  spdlog::info("before the rank is known");
  SetLogIndex(3);
  spdlog::warn("\"quoted\"\nand over two lines");
  std::istringstream lines(Read("log"));
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(lines, line);) {
    records.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].contains("index"));
  EXPECT_EQ(records[0]["role"], "worker");
  EXPECT_EQ(records[1]["index"], 3);
  EXPECT_EQ(records[1]["level"], "warning");
  EXPECT_EQ(records[1]["message"], "\"quoted\"\nand over two lines");
}

TEST_F(LogTest, WhatIsBelowTheLevelIsNotWrittenButWarningsCount) {
  LogOptions options = Options();
  options.level = "error";
  TRIBUTARY_EXPECT_OK(SetUpLog(options));
  MetricsWriter before;
  WriteLogMetrics(&before);
  spdlog::info("not shown");
  spdlog::warn("not shown either");
  spdlog::error("shown");
  EXPECT_THAT(Read("log"), HasSubstr("\"shown\""));
  EXPECT_THAT(Read("log"), Not(HasSubstr("not shown")));
  MetricsWriter after;
  WriteLogMetrics(&after);
  EXPECT_NE(before.Text(), after.Text());
  const auto count = [](const std::string& page, const std::string& level) {
    const std::string series =
        "tributary_log_messages_total{level=\"" + level + "\"} ";
    return std::stoi(page.substr(page.find(series) + series.size()));
  };
  for (const char* level : {"warning", "error"}) {
    EXPECT_EQ(count(after.Text(), level), count(before.Text(), level) + 1);
  }
}

TEST_F(LogTest, AWrongLevelAndAFileThatCannotBeOpenedAreErrors) {
  LogOptions options = Options();
  options.level = "loud";
  EXPECT_THAT(SetUpLog(options),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"loud\""));
  options = Options();
  options.file = Write("file", "") + "/log";
  EXPECT_THAT(SetUpLog(options),
              StatusIs(absl::StatusCode::kUnavailable, options.file));
}

}  // namespace
}  // namespace tributary
