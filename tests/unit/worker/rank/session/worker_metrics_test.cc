// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::StepReport Report(int64_t step, double loss_sum, uint64_t samples) {
  v1::StepReport report;
  report.set_step(step);
  report.set_loss_sum(loss_sum);
  report.set_samples(samples);
  report.set_step_seconds(1.75);  // the sum of the parts
  report.set_data_seconds(0.125);
  report.set_compute_seconds(0.5);
  report.set_push_seconds(0.125);
  report.set_wait_seconds(0.25);
  report.set_exchange_seconds(0.5);
  report.set_idle_seconds(0.25);
  return report;
}

std::string Page(const WorkerMetrics& metrics, bool waiting = false) {
  MetricsWriter writer;
  metrics.Write(/*rank=*/3, /*num_shards=*/2, waiting, &writer);
  return writer.Text();
}

TEST(WorkerMetricsTest, StepsAddUpAndTheLastOneShows) {
  WorkerMetrics metrics;
  metrics.CountStep(Report(7, 8.0, 4), {});
  metrics.CountStep(Report(8, 6.0, 4),
                    {.bytes_sent = 100, .bytes_received = 50, .retries = 2});
  metrics.SetPrefetched(2);
  const std::string page = Page(metrics);
  for (const char* line :
       {"tributary_worker_step{rank=\"3\"} 8\n",
        "tributary_worker_steps_total{rank=\"3\"} 2\n",
        "tributary_worker_samples_total{rank=\"3\"} 8\n",
        "tributary_worker_loss{rank=\"3\"} 1.5\n",
        "tributary_worker_sent_bytes_total{rank=\"3\"} 100\n",
        "tributary_worker_received_bytes_total{rank=\"3\"} 50\n",
        "tributary_worker_retries_total{rank=\"3\"} 2\n",
        "tributary_worker_prefetched_batches{rank=\"3\"} 2\n",
        "tributary_worker_step_part_seconds_total{rank=\"3\",part=\"data\"} "
        "0.25\n",
        "tributary_worker_step_part_seconds_total{rank=\"3\",part=\"compute\"} "
        "1\n",
        "tributary_worker_step_part_seconds_total{rank=\"3\",part=\"push\"} "
        "0.25\n",
        "tributary_worker_step_part_seconds_total{rank=\"3\",part=\"wait\"} "
        "0.5\n",
        "tributary_worker_step_part_seconds_total{rank=\"3\",part=\"exchange\"}"
        " "
        "1\n",
        "tributary_worker_step_part_seconds_total{rank=\"3\",part=\"idle\"} "
        "0.5\n",
        "tributary_worker_step_duration_seconds_count{rank=\"3\"} 2\n",
        "tributary_worker_step_duration_seconds_sum{rank=\"3\"} 3.5\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(WorkerMetricsTest, AStepWithoutSamplesOrLossKeepsTheLastLoss) {
  WorkerMetrics metrics;
  EXPECT_THAT(Page(metrics), Not(HasSubstr("tributary_worker_loss")));
  metrics.CountStep(Report(1, 8.0, 4), {});
  metrics.CountStep(Report(2, 0.0, 0), {});
  v1::StepReport without = Report(3, 0.0, 4);
  without.set_no_loss(true);
  metrics.CountStep(without, {});
  EXPECT_THAT(Page(metrics),
              HasSubstr("tributary_worker_loss{rank=\"3\"} 2\n"));
}

TEST(WorkerMetricsTest, WaitingShows) {
  const WorkerMetrics metrics;
  EXPECT_THAT(Page(metrics, /*waiting=*/true),
              HasSubstr("tributary_worker_waiting{rank=\"3\"} 1\n"));
  EXPECT_THAT(Page(metrics),
              HasSubstr("tributary_worker_waiting{rank=\"3\"} 0\n"));
}

TEST(WorkerMetricsTest, TheServerThatDoesNotAnswerIsNamed) {
  WorkerMetrics metrics;
  metrics.SetSilentShard(1);
  for (const char* line :
       {"tributary_worker_waiting_for_shard{rank=\"3\",shard=\"0\"} 0\n",
        "tributary_worker_waiting_for_shard{rank=\"3\",shard=\"1\"} 1\n"}) {
    EXPECT_THAT(Page(metrics), HasSubstr(line));
  }
  metrics.SetSilentShard(-1);
  EXPECT_THAT(Page(metrics), HasSubstr("shard=\"1\"} 0\n"));
}

}  // namespace
}  // namespace tributary
