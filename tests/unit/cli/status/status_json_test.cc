// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/status/status_text.h"

namespace tributary {
namespace {

using Json = nlohmann::json;

v1::JobStatusResponse Running() {
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
  server->add_waiting_for_ranks(1);
  status.add_members()->set_role(v1::ROLE_WORKER);
  return status;
}

TEST(StatusJsonTest, HoldsTheJobAndItsMembers) {
  const Json json = Json::parse(StatusJson(Running(), /*one_line=*/false));
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
  v1::JobStatusResponse status = Running();
  status.set_checkpoint_every_steps(20);
  status.set_checkpoint_step(40);
  EXPECT_EQ(Json::parse(StatusJson(status, true))["checkpoint"]["step"], 40);
}

TEST(StatusJsonTest, AValidationSetStandsBesideTheTestSet) {
  v1::JobStatusResponse status = Running();
  EXPECT_FALSE(Json::parse(StatusJson(status, true)).contains("validation"));
  (*status.mutable_validation())["accuracy"] = 0.75;
  const Json json = Json::parse(StatusJson(status, true));
  EXPECT_EQ(json["validation"]["accuracy"], 0.75);
  EXPECT_EQ(json["test"]["accuracy"], 0.875);
}

TEST(StatusJsonTest, AnOpenEndIsNull) {
  EXPECT_TRUE(
      Json::parse(StatusJson(Running(), true))["total_steps"].is_null());
  v1::JobStatusResponse status = Running();
  status.set_total_steps(80);
  EXPECT_EQ(Json::parse(StatusJson(status, true))["total_steps"], 80);
}

TEST(StatusJsonTest, OneLineIsOneLineAndADivergedLossIsNull) {
  v1::JobStatusResponse status = Running();
  status.set_loss(std::nan(""));
  status.set_message("why\nnot");
  const std::string line = StatusJson(status, /*one_line=*/true);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(Json::parse(line)["loss"].is_null());
  status.clear_step();
  EXPECT_TRUE(Json::parse(StatusJson(status, true))["learning_rate"].is_null());
}

}  // namespace
}  // namespace tributary
