// SPDX-License-Identifier: Apache-2.0
#include "cli/status/job_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tributary {
namespace {

ListedJob Job(const std::string& name) {
  ListedJob job;
  job.known.job.name = name;
  job.known.job.coordinator = "127.0.0.1:4000";
  job.known.job.run_directory = "/runs/" + name;
  job.known.job.started_micros = 1'000'000;
  return job;
}

TEST(JobTableTest, ALineForEachJobWithoutControlCharacters) {
  ListedJob runs = Job("digits");
  runs.status.emplace();
  runs.status->set_phase(v1::JOB_PHASE_RUNNING);
  runs.status->set_step(812);
  runs.status->set_total_steps(5000);
  ListedJob gone = Job("a\x1b[2J");
  gone.known.job.run_directory = "";
  gone.state = "done after step 32 of 32";
  EXPECT_EQ(JobTable({runs, gone}, 31'000'000),
            "NAME    AGE     COORDINATOR     RUN DIRECTORY  STATE\n"
            "digits  30.0 s  127.0.0.1:4000  /runs/digits   running, step 812 "
            "of 5,000\n"
            "a [2J   30.0 s  127.0.0.1:4000  -              done after step 32 "
            "of 32\n");
  EXPECT_EQ(JobTable({}, 0), "no job of yours runs on this machine\n");
}

TEST(JobTableTest, TheSameForPrograms) {
  ListedJob runs = Job("digits");
  runs.status.emplace();
  runs.status->set_phase(v1::JOB_PHASE_WAITING);
  const auto json = nlohmann::json::parse(JobListJson({runs, Job("other")}));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["name"], "digits");
  EXPECT_EQ(json[0]["phase"], "waiting");
  EXPECT_FALSE(json[1].contains("phase"));
  EXPECT_EQ(nlohmann::json::parse(JobListJson({})), nlohmann::json::array());
}

}  // namespace
}  // namespace tributary
