// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::MemberStatus* Add(v1::JobStatusResponse& status, v1::Role role, int index,
                      bool alive) {
  v1::MemberStatus* member = status.add_members();
  member->set_role(role);
  member->set_index(index);
  member->set_alive(alive);
  member->set_holders(1);
  member->set_host("node");
  return member;
}

v1::JobStatusResponse RunningJob() {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_strategy("parameter_server");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_step(50);
  status.set_total_steps(200);
  status.set_epoch(2.5);
  status.set_loss(0.5);
  status.set_learning_rate(0.125);
  status.set_samples(3200);
  status.set_samples_per_second(1200);
  status.set_step_wait_seconds(0.25);
  (*status.mutable_test())["accuracy"] = 0.75;
  (*status.mutable_validation())["accuracy"] = 0.875;
  Add(status, v1::ROLE_SERVER, 0, true);
  Add(status, v1::ROLE_WORKER, 0, true)->set_step(51);
  return status;
}

std::string Page(const v1::JobStatusResponse& status,
                 const HistogramSnapshot& checkpoints = {}) {
  MetricsWriter writer;
  WriteJobMetrics(status, checkpoints, &writer);
  return writer.Text();
}

TEST(JobMetricsTest, ALossThatNobodyReportsIsNoMetric) {
  v1::JobStatusResponse status = RunningJob();
  status.clear_loss();
  EXPECT_EQ(Page(status).find("tributary_job_loss"), std::string::npos);
}

TEST(JobMetricsTest, ARunningJobTellsItsProgress) {
  const std::string page = Page(RunningJob());
  for (const char* line :
       {"tributary_job_info{name=\"digits\",strategy=\"parameter_server\"} 1\n",
        "tributary_job_phase{phase=\"running\"} 1\n",
        "tributary_job_phase{phase=\"failed\"} 0\n", "tributary_job_step 50\n",
        "tributary_job_planned_steps 200\n", "tributary_job_epoch 2.5\n",
        "tributary_job_loss 0.5\n", "tributary_job_learning_rate 0.125\n",
        "tributary_job_samples_total 3200\n",
        "tributary_job_samples_per_second 1200\n",
        "tributary_job_step_wait_seconds 0.25\n",
        "tributary_job_test_metric{metric=\"accuracy\"} 0.75\n",
        "tributary_job_validation_metric{metric=\"accuracy\"} 0.875\n",
        "tributary_member_step{role=\"worker\",index=\"0\"} 51\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(JobMetricsTest, WhatIsNotKnownYetIsAbsent) {
  v1::JobStatusResponse status;
  status.set_phase(v1::JOB_PHASE_WAITING);
  const std::string page = Page(status);
  for (const char* name : {"tributary_job_loss", "tributary_job_planned_steps",
                           "tributary_job_step_wait", "tributary_job_test",
                           "tributary_job_validation"}) {
    EXPECT_THAT(page, Not(HasSubstr(name)));
  }
}

TEST(JobMetricsTest, CheckpointsAreToldWhereSomeAreWanted) {
  v1::JobStatusResponse status = RunningJob();
  EXPECT_THAT(Page(status), Not(HasSubstr("tributary_checkpoint")));
  status.set_checkpoint_every_steps(20);
  status.set_checkpoint_step(40);
  status.set_seconds_since_checkpoint(1.5);
  status.set_checkpoint_failures(1);
  status.set_rollbacks(2);
  Histogram seconds({1});
  seconds.Observe(0.5);
  seconds.Observe(0.25);
  const std::string page = Page(status, seconds.Snapshot());
  for (const char* line : {"tributary_checkpoint_every_steps 20\n",
                           "tributary_checkpoint_step 40\n",
                           "tributary_checkpoint_age_seconds 1.5\n",
                           "tributary_checkpoints_total 2\n",
                           "tributary_checkpoint_failures_total 1\n",
                           "tributary_checkpoint_duration_seconds_sum 0.75\n",
                           "tributary_job_rollbacks_total 2\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(JobMetricsTest, EveryPlaceIsInOneState) {
  v1::JobStatusResponse status = RunningJob();
  v1::MemberStatus* lost = Add(status, v1::ROLE_WORKER, 1, false);
  lost->set_losses(2);
  lost->set_holders(2);
  Add(status, v1::ROLE_WORKER, 2, true)->set_finished(true);
  Add(status, v1::ROLE_WORKER, 3, false)->set_holders(0);
  const std::string page = Page(status);
  for (const char* line :
       {"tributary_members{role=\"server\",state=\"alive\"} 1\n",
        "tributary_members{role=\"server\",state=\"lost\"} 0\n",
        "tributary_members{role=\"worker\",state=\"alive\"} 1\n",
        "tributary_members{role=\"worker\",state=\"lost\"} 1\n",
        "tributary_members{role=\"worker\",state=\"finished\"} 1\n",
        "tributary_members{role=\"worker\",state=\"missing\"} 1\n",
        "tributary_member_losses_total{role=\"worker\"} 2\n",
        "tributary_member_restarts_total{role=\"worker\"} 1\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  // Nobody has held place 3, and place 2 is not heard any more.
  EXPECT_THAT(page, Not(HasSubstr("tributary_member_info{role=\"worker\","
                                  "index=\"3\"")));
  EXPECT_THAT(page, Not(HasSubstr("tributary_member_heartbeat_age_seconds{"
                                  "role=\"worker\",index=\"2\"")));
}

TEST(JobMetricsTest, TargetsAreEveryAddressOfThoseWhoAreNotFinished) {
  v1::JobStatusResponse status = RunningJob();
  status.mutable_members(0)->set_metrics_address("a:1");
  status.mutable_members(1)->set_metrics_address("b:2");
  v1::MemberStatus* lost = Add(status, v1::ROLE_WORKER, 1, false);
  lost->set_metrics_address("b:3");  // stays: that it is down shall be seen
  v1::MemberStatus* finished = Add(status, v1::ROLE_WORKER, 2, true);
  finished->set_finished(true);
  finished->set_metrics_address("b:4");
  Add(status, v1::ROLE_WORKER, 3, true);  // has no metrics
  EXPECT_EQ(nlohmann::json::parse(ScrapeTargetsJson(status, "c:9")),
            nlohmann::json::parse(R"([
    {"targets": ["c:9"],
     "labels": {"job": "tributary-coordinator", "run": "digits"}},
    {"targets": ["a:1"], "labels": {"job": "tributary-server", "run": "digits"}},
    {"targets": ["b:2", "b:3"],
     "labels": {"job": "tributary-worker", "run": "digits"}}])"));
  EXPECT_EQ(ScrapeTargetsJson(v1::JobStatusResponse(), ""), "[]\n");
}

}  // namespace
}  // namespace tributary
