// SPDX-License-Identifier: Apache-2.0
#include "cli/run/metrics_ports.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

v1::ClusterSpec Cluster(int servers, int workers) {
  v1::ClusterSpec cluster;
  cluster.set_servers(servers);
  cluster.set_workers(workers);
  return cluster;
}

TEST(MetricsPortsTest, ServersThenWorkersFollowTheCoordinator) {
  const auto ports = MetricsPorts::Create("127.0.0.1:7090", Cluster(2, 3));
  TRIBUTARY_ASSERT_OK(ports);
  EXPECT_EQ(ports->ServerAddress(0), "127.0.0.1:7091");
  EXPECT_EQ(ports->ServerAddress(1), "127.0.0.1:7092");
  EXPECT_EQ(ports->WorkerAddress(0), "127.0.0.1:7093");
  EXPECT_EQ(ports->WorkerAddress(2), "127.0.0.1:7095");
}

TEST(MetricsPortsTest, PortZeroLeavesEverybodyAFreeOne) {
  const auto ports = MetricsPorts::Create("0.0.0.0:0", Cluster(1, 1));
  TRIBUTARY_ASSERT_OK(ports);
  EXPECT_EQ(ports->ServerAddress(0), "0.0.0.0:0");
  EXPECT_EQ(ports->WorkerAddress(0), "0.0.0.0:0");
}

TEST(MetricsPortsTest, OnOtherHostsThePortsAreTheSame) {
  const Host host("fd00::2", {"ssh", "{host}"});
  auto ports = MetricsPorts::Create("10.0.0.1:7090", Cluster(2, 3));
  TRIBUTARY_ASSERT_OK(ports);
  EXPECT_EQ(ports->WorkerAddress(0, &host), "[fd00::2]:7093");
  ports = MetricsPorts::Create("", Cluster(2, 3));
  TRIBUTARY_ASSERT_OK(ports);
  EXPECT_EQ(ports->ServerAddress(0, &host), "");
}

TEST(MetricsPortsTest, WithoutAnAddressThereIsNone) {
  const auto ports = MetricsPorts::Create("", Cluster(1, 1));
  TRIBUTARY_ASSERT_OK(ports);
  EXPECT_EQ(ports->ServerAddress(0), "");
}

TEST(MetricsPortsTest, TooFewPortsAboveIsAnErrorBeforeAnythingStarts) {
  TRIBUTARY_EXPECT_OK(MetricsPorts::Create("h:65533", Cluster(1, 1)));
  EXPECT_THAT(MetricsPorts::Create("h:65534", Cluster(1, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, "65536"));
  EXPECT_THAT(MetricsPorts::Create("7090", Cluster(1, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, "HOST:PORT"));
}

}  // namespace
}  // namespace tributary
