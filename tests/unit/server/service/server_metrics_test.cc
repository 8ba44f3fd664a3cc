// SPDX-License-Identifier: Apache-2.0
#include "server/service/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::ServerStatusResponse Status() {
  v1::ServerStatusResponse status;
  status.set_shard(1);
  status.set_min_version(7);
  status.set_max_version(8);
  status.set_contributions(14);
  (*status.mutable_rejections())["shape"] = 3;
  (*status.mutable_rejections())["fenced"] = 0;
  // 5 pulls of weights 0 steps behind, 2 of 1, 1 beyond the last bound.
  for (uint64_t pulls : {5, 2, 0, 0, 0, 0, 0, 0, 1}) {
    status.add_staleness(pulls);
  }
  status.set_staleness_sum(102);
  status.set_held_bytes(4096);
  status.set_unread_bytes(8192);
  status.set_shared_memory_workers(2);
  return status;
}

std::string Page(const v1::ServerStatusResponse& status,
                 const RankWaits& waits) {
  MetricsWriter writer;
  WriteServerMetrics(status, waits, &writer);
  return writer.Text();
}

TEST(ServerMetricsTest, EverySeriesNamesTheShard) {
  RankWaits waits(/*num_workers=*/2);
  waits.Sample(0, {});
  waits.Sample(500'000, {1});
  const std::string page = Page(Status(), waits);
  for (const char* line :
       {"tributary_server_min_version{shard=\"1\"} 7\n",
        "tributary_server_max_version{shard=\"1\"} 8\n",
        "tributary_server_contributions_total{shard=\"1\"} 14\n",
        "tributary_server_rejected_total{shard=\"1\",reason=\"shape\"} 3\n",
        "tributary_server_rejected_total{shard=\"1\",reason=\"fenced\"} 0\n",
        "tributary_server_held_bytes{shard=\"1\"} 4096\n",
        "tributary_server_unread_bytes{shard=\"1\"} 8192\n",
        "tributary_server_shared_memory_workers{shard=\"1\"} 2\n",
        "tributary_server_straggler_wait_seconds_total{shard=\"1\",rank=\"1\"} "
        "0.5\n",
        "tributary_server_waiting_for_rank{shard=\"1\",rank=\"0\"} 0\n",
        "tributary_server_waiting_for_rank{shard=\"1\",rank=\"1\"} 1\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(ServerMetricsTest, StalenessIsAHistogramOfPulls) {
  const RankWaits waits(1);
  const std::string page = Page(Status(), waits);
  for (
      const char* line :
      {"tributary_server_pull_staleness_steps_count{shard=\"1\"} 8\n",
       "tributary_server_pull_staleness_steps_sum{shard=\"1\"} 102\n",
       "tributary_server_pull_staleness_steps_bucket{shard=\"1\",le=\"0\"} 5\n",
       "tributary_server_pull_staleness_steps_bucket{shard=\"1\",le=\"1\"} 7\n",
       "tributary_server_pull_staleness_steps_bucket{shard=\"1\",le=\"64\"} "
       "7\n",
       "tributary_server_pull_staleness_steps_bucket{shard=\"1\",le=\"+Inf\"} "
       "8\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(ServerMetricsTest, APolicyWithoutABoundHasNone) {
  const RankWaits waits(1);
  v1::ServerStatusResponse status = Status();
  EXPECT_THAT(Page(status, waits), Not(HasSubstr("staleness_bound")));
  status.set_staleness_bound(0);
  EXPECT_THAT(
      Page(status, waits),
      HasSubstr("tributary_server_staleness_bound_steps{shard=\"1\"} 0\n"));
}

}  // namespace
}  // namespace tributary
