// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/run_record.h"
#include "common/base/version.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tributary {
namespace {

using nlohmann::json;

TEST(RunRecordTest, MetricsLineHasEveryFieldOfTheStep) {
  const StepRecord record = {.step = 3,
                             .epoch = 1,
                             .loss = 0.25,
                             .learning_rate = 0.001,
                             .samples = 64,
                             .samples_per_second = 1000,
                             .seconds = {.step = 0.064,
                                         .data = 0.002,
                                         .compute = 0.05,
                                         .push = 0.002,
                                         .exchange = 0.003,
                                         .idle = 0.004,
                                         .wait = 0.01,
                                         .optimizer = 0.001},
                             .peer_seconds = 0.005,
                             .bytes_sent = 77,
                             .bytes_received = 88};
  const json line = json::parse(MetricsLine(record));
  EXPECT_EQ(line["step"], 3);
  EXPECT_EQ(line["epoch"], 1);
  EXPECT_EQ(line["loss"], 0.25);
  EXPECT_EQ(line["learning_rate"], 0.001);
  EXPECT_EQ(line["samples"], 64);
  EXPECT_EQ(line["samples_per_second"], 1000);
  EXPECT_EQ(line["step_seconds"], 0.064);
  EXPECT_EQ(line["compute_seconds"], 0.05);
  EXPECT_EQ(line["push_seconds"], 0.002);
  EXPECT_EQ(line["wait_seconds"], 0.01);
  EXPECT_EQ(line["data_seconds"], 0.002);
  EXPECT_EQ(line["exchange_seconds"], 0.003);
  EXPECT_EQ(line["idle_seconds"], 0.004);
  EXPECT_EQ(line["peer_seconds"], 0.005);
  EXPECT_EQ(line["optimizer_seconds"], 0.001);
  EXPECT_EQ(line["bytes_sent"], 77);
  EXPECT_EQ(line["bytes_received"], 88);
  EXPECT_EQ(line.size(), 17u);
}

TEST(RunRecordTest, TimelineLineCountsFromTheEarliestRank) {
  StepRecord record;
  record.step = 7;
  record.ranks.resize(3);
  for (const auto& [rank, begin] : {std::pair{0, 1000250}, {2, 1000000}}) {
    v1::StepReport& report = record.ranks[rank];
    report.set_begin_micros(begin);
    report.set_step_seconds(0.0012);
    v1::StepSpan* span = report.add_spans();
    span->set_activity(v1::STEP_ACTIVITY_BACKWARD);
    span->set_begin_micros(100);
    span->set_end_micros(900);
  }
  // Rank 1 was lost: its report has no spans.
  EXPECT_EQ(json::parse(TimelineLine(record)), json::parse(R"({
    "step": 7, "ranks": [
      {"rank": 0, "begin_micros": 250, "step_micros": 1200,
       "spans": [["backward", 100, 900]]},
      {"rank": 2, "begin_micros": 0, "step_micros": 1200,
       "spans": [["backward", 100, 900]]}]})"));
}

TEST(RunRecordTest, LossKeepsItsDigits) {
  StepRecord record;
  record.loss = 0.1234567890123456789;
  EXPECT_EQ(json::parse(MetricsLine(record))["loss"].get<double>(),
            record.loss);
}

TEST(RunRecordTest, ALossThatNobodyReportsIsNull) {
  const json line = json::parse(MetricsLine(StepRecord()));
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_EQ(line["no_loss"], true);
  RunSummary summary;
  summary.totals.steps = 3;
  EXPECT_TRUE(json::parse(SummaryJson(summary))["final_loss"].is_null());
}

TEST(RunRecordTest, DivergedLossIsStillJson) {
  StepRecord record;
  record.loss = std::nan("");
  EXPECT_TRUE(json::parse(MetricsLine(record))["loss"].is_null());
}

RunSummary Done() {
  RunSummary summary;
  summary.name = "digits";
  summary.status = "done";
  summary.started = "2024-01-02T03:04:05Z";
  summary.seconds = 12.5;
  summary.totals.steps = 900;
  summary.totals.epochs = 20;
  summary.totals.samples = 28740;
  summary.totals.skipped_steps = 7;
  summary.totals.training_seconds = 10;
  summary.totals.final_loss = 0.125;
  summary.totals.bytes_sent = 11;
  summary.totals.bytes_received = 22;
  summary.total_steps = 900;
  summary.evaluations = {{450, 10, 360, {{"accuracy", 0.5}}},
                         {900, 20, 360, {{"accuracy", 0.75}}}};
  summary.weights_sha256 = "abc";
  v1::MemberStatus worker;
  worker.set_role(v1::ROLE_WORKER);
  worker.set_index(1);
  worker.set_host("node-a");
  worker.set_device("cpu");
  worker.set_peak_memory_bytes(4096);
  worker.set_bytes_sent(11);
  worker.set_bytes_received(22);
  summary.members = {worker, v1::MemberStatus()};
  return summary;
}

TEST(RunRecordTest, SummaryTellsHowTheRunWent) {
  const json summary = json::parse(SummaryJson(Done()));
  EXPECT_EQ(summary["status"], "done");
  EXPECT_EQ(summary["steps"], 900);
  EXPECT_EQ(summary["epochs"], 20);
  EXPECT_EQ(summary["skipped_steps"], 7);
  EXPECT_EQ(summary["final_loss"], 0.125);
  EXPECT_EQ(summary["test"], json({{"accuracy", 0.75}})) << "the last one";
  EXPECT_EQ(summary["evaluations"].size(), 2u);
  EXPECT_EQ(summary["evaluations"][0]["test"]["accuracy"], 0.5);
  EXPECT_EQ(summary["samples_per_second"], 2874);  // of training alone
  EXPECT_EQ(summary["seconds"], 12.5);
  EXPECT_EQ(summary["bytes"]["sent_by_workers"], 11);
  EXPECT_EQ(summary["bytes"]["received_by_workers"], 22);
  EXPECT_EQ(summary["weights_sha256"], "abc");
  EXPECT_EQ(summary["versions"]["tributary"], kVersion);
  EXPECT_FALSE(summary.contains("message"));
}

TEST(RunRecordTest, AnUnknownNumberOfStepsIsNullHoweverManyWereDone) {
  RunSummary run = Done();
  run.total_steps = 0;
  for (const int64_t done : {900, 0}) {
    run.totals.steps = done;
    EXPECT_TRUE(json::parse(SummaryJson(run))["total_steps"].is_null()) << done;
  }
}

TEST(RunRecordTest, SummaryTellsValidationAndTestApart) {
  RunSummary run = Done();
  run.evaluations = {{450, 10, 90, {{"accuracy", 0.5}}, "validation"},
                     {900, 20, 90, {{"accuracy", 0.75}}, "validation"},
                     {900, 20, 360, {{"accuracy", 0.625}}, "test"}};
  const json summary = json::parse(SummaryJson(run));
  EXPECT_EQ(summary["validation"], json({{"accuracy", 0.75}}));
  EXPECT_EQ(summary["test"], json({{"accuracy", 0.625}}));
  ASSERT_EQ(summary["evaluations"].size(), 3u);
  EXPECT_EQ(summary["evaluations"][0]["validation"]["accuracy"], 0.5);
  EXPECT_FALSE(summary["evaluations"][0].contains("test"));
  EXPECT_EQ(summary["evaluations"][2]["test"]["accuracy"], 0.625);
  EXPECT_FALSE(json::parse(SummaryJson(Done())).contains("validation"));
}

TEST(RunRecordTest, SummaryListsTheProcessesThatCame) {
  const json processes = json::parse(SummaryJson(Done()))["processes"];
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0]["role"], "coordinator");
  EXPECT_EQ(processes[1]["role"], "worker");
  EXPECT_EQ(processes[1]["index"], 1);
  EXPECT_EQ(processes[1]["peak_memory_bytes"], 4096);
  EXPECT_EQ(processes[1]["bytes_sent"], 11);
  EXPECT_EQ(processes[1]["bytes_received"], 22);
}

TEST(RunRecordTest, FailedRunSaysWhyAndHasNoWeights) {
  RunSummary summary;
  summary.status = "failed";
  summary.message = "worker 1 said \"\xff\"";  // not UTF-8
  const json parsed = json::parse(SummaryJson(summary));
  EXPECT_EQ(parsed["status"], "failed");
  EXPECT_TRUE(parsed.contains("message"));
  EXPECT_TRUE(parsed["weights_sha256"].is_null());
  EXPECT_TRUE(parsed["final_loss"].is_null());
  EXPECT_EQ(parsed["skipped_steps"], 0);
  EXPECT_EQ(parsed["test"], json::object());
  EXPECT_EQ(parsed["samples_per_second"], 0);
}

TEST(RunRecordTest, AnEventLineReadsBackAsTheSameEvent) {
  const HistoryEvent event{1'795'614'775'240'216, "worker \"1\"\nwas lost",
                           true};
  const std::string line = EventLine(event);
  EXPECT_EQ(line,
            R"({"time":"2026-11-25T13:52:55.240216Z","kind":"checkpoint",)"
            R"("text":"worker \"1\"\nwas lost"})");
  const std::optional<HistoryEvent> read = ReadEventLine(line);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->micros, event.micros);
  EXPECT_EQ(read->text, event.text);
  EXPECT_TRUE(read->checkpoint);
}

TEST(RunRecordTest, ALineThatIsNoEventIsNone) {
  for (const char* line :
       {"", "no JSON", "[]", "7", R"({"time":"2026-11-25T13:52:55Z"})",
        R"({"time":7,"text":"lost"})", R"({"time":"today","text":"lost"})",
        R"({"time":"2026-11-25T13:52:55Z","text":7})"}) {
    EXPECT_FALSE(ReadEventLine(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace tributary
