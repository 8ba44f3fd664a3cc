// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/status_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tributary {
namespace {

using Json = nlohmann::json;

v1::JobStatusResponse RunningStatus() {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.set_phase(v1::JOB_PHASE_RUNNING);
  status.set_step(50);
  status.set_loss(0.5);
  status.set_step_wait_seconds(0.25);
  (*status.mutable_test())["accuracy"] = 0.875;
  v1::MemberStatus* server = status.add_members();
  server->set_role(v1::ROLE_SERVER);
  server->set_host("node-a");
  server->set_alive(true);
  server->mutable_wait()->add_ranks(1);
  status.add_members()->set_role(v1::ROLE_WORKER);
  return status;
}

TEST(StatusJsonTest, HoldsTheJobAndItsMembers) {
  const Json json =
      Json::parse(StatusJson(RunningStatus(), /*one_line=*/false));
  EXPECT_EQ(json["phase"], "running");
  EXPECT_EQ(json["step"], 50);
  EXPECT_EQ(json["loss"], 0.5);
  EXPECT_EQ(json["step_wait_seconds"], 0.25);
  EXPECT_EQ(json["test"]["accuracy"], 0.875);
  ASSERT_EQ(json["members"].size(), 2u);
  EXPECT_EQ(json["members"][0]["role"], "server");
  EXPECT_EQ(json["members"][0]["waiting_for_ranks"], Json({1}));
  EXPECT_EQ(json["members"][1]["alive"], false);
  EXPECT_FALSE(json["members"][1].contains("host"));  // nobody has come
  EXPECT_FALSE(json.contains("checkpoint"));
  v1::JobStatusResponse status = RunningStatus();
  status.set_checkpoint_every_steps(20);
  status.set_checkpoint_step(40);
  EXPECT_EQ(Json::parse(StatusJson(status, true))["checkpoint"]["step"], 40);
}

TEST(StatusJsonTest, AValidationSetStandsBesideTheTestSet) {
  v1::JobStatusResponse status = RunningStatus();
  EXPECT_FALSE(Json::parse(StatusJson(status, true)).contains("validation"));
  (*status.mutable_validation())["accuracy"] = 0.75;
  const Json json = Json::parse(StatusJson(status, true));
  EXPECT_EQ(json["validation"]["accuracy"], 0.75);
  EXPECT_EQ(json["test"]["accuracy"], 0.875);
}

TEST(StatusJsonTest, AnOpenEndIsNull) {
  EXPECT_TRUE(
      Json::parse(StatusJson(RunningStatus(), true))["total_steps"].is_null());
  v1::JobStatusResponse status = RunningStatus();
  status.set_total_steps(80);
  EXPECT_EQ(Json::parse(StatusJson(status, true))["total_steps"], 80);
}

TEST(StatusJsonTest, OneLineIsOneLineAndADivergedLossIsNull) {
  v1::JobStatusResponse status = RunningStatus();
  status.set_loss(std::nan(""));
  status.set_message("why\nnot");
  const std::string line = StatusJson(status, /*one_line=*/true);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(Json::parse(line)["loss"].is_null());
  status.clear_loss();
  EXPECT_TRUE(Json::parse(StatusJson(status, true))["loss"].is_null());
  status.clear_step();
  EXPECT_TRUE(Json::parse(StatusJson(status, true))["learning_rate"].is_null());
}

TEST(StatusJsonTest, AWaitTellsSinceWhenAndAFailedCheckpointWhy) {
  v1::JobStatusResponse status = RunningStatus();
  EXPECT_FALSE(Json::parse(StatusJson(status, true)).contains("waits_for"));
  status.mutable_wait()->set_text("waiting for server 1");
  status.mutable_wait()->set_seconds(2.5);
  status.set_checkpoint_every_steps(20);
  status.set_checkpoint_error("server 0: no space");
  const Json json = Json::parse(StatusJson(status, true));
  EXPECT_EQ(json["waits_for"], "waiting for server 1");
  EXPECT_EQ(json["waits_seconds"], 2.5);
  EXPECT_EQ(json["checkpoint"]["error"], "server 0: no space");
}

TEST(StatusJsonTest, ALastStepHasTheKeysOfMetricsAndEventsAreInOrder) {
  v1::JobStatusResponse status = RunningStatus();
  v1::MemberStatus* worker = status.mutable_members(1);
  worker->set_host("node-b");
  worker->mutable_last_step()->set_step(49);
  worker->mutable_last_step()->set_samples(32);
  worker->mutable_last_step()->set_step_seconds(0.5);
  worker->mutable_last_step()->set_wait_seconds(0.25);
  worker->mutable_last_step()->set_push_seconds(4.8000000000000963e-05);
  for (int64_t i = 1; i <= 2; ++i) {
    v1::JobEvent* event = status.add_events();
    event->set_micros(i);
    event->set_text(i == 1 ? "lost" : "replaced");
  }
  const Json json = Json::parse(StatusJson(status, true));
  EXPECT_FALSE(json["members"][0].contains("last_step"));
  EXPECT_EQ(json["members"][1]["last_step"]["step"], 49);
  EXPECT_EQ(json["members"][1]["last_step"]["samples"], 32);
  EXPECT_EQ(json["members"][1]["last_step"]["step_seconds"], 0.5);
  EXPECT_EQ(json["members"][1]["last_step"]["wait_seconds"], 0.25);
  EXPECT_EQ(json["members"][1]["last_step"]["push_seconds"], 4.8e-05);
  EXPECT_EQ(json["events"], Json({{{"micros", 1}, {"text", "lost"}},
                                  {{"micros", 2}, {"text", "replaced"}}}));
}

// A member chooses its texts: whatever they hold, the line stays one JSON
// object.
TEST(StatusJsonTest, TextOfAMemberIsEscaped) {
  v1::JobStatusResponse status = RunningStatus();
  status.mutable_members(0)->mutable_wait()->set_text("</script>\"\n\x01");
  status.mutable_members(0)->set_device("\xff\xfe");
  const std::string line = StatusJson(status, /*one_line=*/true);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["members"][0]["waiting_for"], "</script>\"\n\x01");
  EXPECT_EQ(json["members"][0]["device"], "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace tributary
