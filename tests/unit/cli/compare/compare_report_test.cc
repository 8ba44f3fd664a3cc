// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "cli/compare/compare_table.h"
#include "cli/compare/report_json.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/cli/compare/run_folders.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::StatusIs;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

RunData::Step Step(double seconds, double wait = 0, double peer = 0,
                   double optimizer = 0) {
  RunData::Step step;
  step.seconds.step = seconds;
  step.seconds.wait = wait;
  step.peer_seconds = peer;
  step.seconds.optimizer = optimizer;
  step.seconds.compute = seconds - wait;
  return step;
}

TEST(MedianPartsTest, WarmupIsLeftOutAndPartsAddUpToTheMedian) {
  // After one step of warm-up: 1, 2, 2, 3, 100; the middle three are averaged.
  const auto parts = MedianParts(
      {Step(50), Step(1), Step(2, 1), Step(100), Step(3, 2, 0.5), Step(2, 1)},
      /*warmup_steps=*/1,
      /*server_optimizer_seconds=*/0);
  ASSERT_TRUE(parts);
  EXPECT_DOUBLE_EQ(parts->step, 2);
  // Compute 1 + 1 + 1, waiting 0.5, communication 1 + 1 + 1.5 of 7.
  EXPECT_DOUBLE_EQ(parts->compute, 2 * 3.0 / 7);
  EXPECT_DOUBLE_EQ(parts->waiting, 2 * 0.5 / 7);
  EXPECT_DOUBLE_EQ(parts->communication, 2 * 3.5 / 7);
  EXPECT_FALSE(MedianParts({Step(1)}, 1, 0));
}

TEST(MedianPartsTest, OptimizerTakesNoMoreThanIsLeftOfTheWait) {
  const auto servers = MedianParts({Step(10, 4, 3)}, 0, 2.5);
  EXPECT_DOUBLE_EQ(servers->optimizer, 1);  // 4 - 3
  EXPECT_DOUBLE_EQ(servers->communication, 0);
  EXPECT_DOUBLE_EQ(servers->waiting, 3);
  const auto workers = MedianParts({Step(10, 4, 3, 0.25)}, 0, 0);
  EXPECT_DOUBLE_EQ(workers->optimizer, 0.25);
  EXPECT_DOUBLE_EQ(workers->communication, 0.75);
}

TEST(WarmupTest, IsAFifthAndAtMostTen) {
  EXPECT_EQ(WarmupSteps(4), 0);
  EXPECT_EQ(WarmupSteps(10), 2);
  EXPECT_EQ(WarmupSteps(1000), 10);
}

RunData::Timeline Timeline(int64_t step, int64_t micros) {
  return {step, {{0, 0, micros, {{"forward", 0, micros}}}}};
}

TEST(TypicalStepTest, IsTheNearestToTheMedianAfterTheWarmup) {
  RunData run;
  run.timelines = {Timeline(1, 1000), Timeline(2, 3000), Timeline(3, 1400),
                   Timeline(4, 900)};
  const auto drawn = TypicalStep(run, /*warmup_steps=*/1, 0.001, true);
  ASSERT_TRUE(drawn);
  EXPECT_EQ(drawn->step, 4);
  EXPECT_FALSE(TypicalStep(run, 4, 0.001, true));
}

TEST(TypicalStepTest, UntilTheSlowestHasComputedTheOthersWaitForIt) {
  RunData run;
  run.timelines = {{1,
                    {{0, 0, 1000, {{"forward", 0, 300}, {"wait", 300, 1000}}},
                     {1,
                      100,
                      900,
                      {{"backward", 0, 500},
                       {"wait", 500, 900},
                       {"communication", 100, 900}}}}}};
  const auto drawn = TypicalStep(run, 0, 0.001, /*gathered=*/true);
  ASSERT_TRUE(drawn);
  const auto& fast = drawn->ranks[0].spans;  // rank 1 has computed at 600
  ASSERT_EQ(fast.size(), 3u);
  EXPECT_EQ(fast[1].activity, "waiting");
  EXPECT_DOUBLE_EQ(fast[1].end_ms, 0.6);
  EXPECT_EQ(fast[2].activity, "exposed");
  const auto& slow = drawn->ranks[1].spans;
  ASSERT_EQ(slow.size(), 3u);
  EXPECT_EQ(slow[1].activity, "exposed");
  EXPECT_DOUBLE_EQ(slow[1].begin_ms, 0.6);
  EXPECT_TRUE(slow[2].beside);
  // Where nobody waits for anybody all of it is communication.
  EXPECT_EQ(TypicalStep(run, 0, 0.001, false)->ranks[0].spans[1].activity,
            "exposed");
}

class CompareReportTest : public testing::RunFoldersTest {
 protected:
  Made Single() const {
    Made made{.name = "one", .strategy = "{parameter_server: {sync: bsp}}"};
    for (int step = 1; step <= 5; ++step) {
      made.metrics.push_back(Metrics(step, 1.0 / step, 8, 2, 0));
    }
    made.server_optimizer_seconds = 0.0025;  // 0.5 ms a step
    return made;
  }
  Made Two() const {
    Made made{.name = "two", .workers = 2};
    for (int step = 1; step <= 5; ++step) {
      made.metrics.push_back(Metrics(step, 1.0 / step, 4, 1.75, 0.5, 0.25));
    }
    made.weights = {3, 4.0000005f};
    made.timeline = {
        R"({"step":3,"ranks":[{"rank":0,"begin_micros":0,"step_micros":6000,)"
        R"("spans":[["forward",0,2000],["backward",2000,4000],)"
        R"(["wait",4000,6000],["communication",2500,5900]]}]})"};
    return made;
  }
  CompareReport Report(const std::vector<std::string>& folders) const {
    std::vector<RunData> runs;
    for (const std::string& folder : folders) {
      runs.push_back(ReadRun(folder).value());
    }
    const auto report = MakeCompareReport(runs);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }
};

TEST_F(CompareReportTest, TablesSayWhatTheRunDirectoriesSay) {
  Made failed = Two();
  failed.name = "three";
  failed.strategy = "{parameter_server: {sync: async}}";
  failed.status = "failed";
  failed.metrics.clear();
  failed.weights.clear();
  failed.test = "{}";
  const CompareReport report =
      Report({Make(Two()), Make(Single()), Make(failed)});
  EXPECT_EQ(absl::StrReplaceAll(ReportText(report), {{folder(), "DIR"}}),
            R"(Time of a step: the median after 1 steps of warm-up
strategy                workers  servers   step  compute  exposed comm.  waiting  optimizer  samples       speed
                                             ms       ms             ms       ms         ms      1/s  single = 1
single                        1        1  10.00     8.00           1.50     0.00       0.50     4000        1.00
parameter_server              2        1   6.00     4.00           1.50     0.50       0.00     6667        1.67
parameter_server:async        2        1      -        -              -        -          -        -           -

Bytes, memory and result
strategy                workers  servers           sent       received  worker peak  server peak        loss  test accuracy  distance
                                          KiB/rank/step  KiB/rank/step          MiB          MiB  at the end     at the end  relative
single                        1        1            4.0            8.0           30           20      0.2000         0.9000         -
parameter_server              2        1            2.0            4.0           30           20      0.2000         0.9000   9.5e-08
parameter_server:async        2        1            0.0            0.0           30           20           -              -         -

DIR/three: failed: why <not>
)");
}

TEST_F(CompareReportTest, PredictionsStandBesideWhatWasMeasured) {
  const std::vector<std::string> folders = {Make(Single()), Make(Two())};
  EXPECT_THAT(ReportText(Report(folders)), Not(HasSubstr("predicted")));
  Write("two/prediction.json", R"({"step_seconds": 0.0072})");
  EXPECT_THAT(ReportText(Report(folders)),
              HasSubstr("  step  predicted  compute"));
  EXPECT_EQ(Report(folders).rows[1].predicted_step_seconds, 0.0072);
  for (const char* wrong : {"", "[]", R"({"step_seconds": -1})"}) {
    Write("two/prediction.json", wrong);
    EXPECT_THAT(ReadRun(folders[1]), StatusIs(kInvalid, "prediction.json"));
  }
}

TEST_F(CompareReportTest, JsonHasEveryFigure) {
  const CompareReport report = Report({Make(Single()), Make(Two())});
  const json parsed = json::parse(ReportJson(report));
  EXPECT_EQ(parsed["name"], "small");
  EXPECT_EQ(parsed["global_batch"], 40);
  EXPECT_EQ(parsed["parameters"], 2);
  EXPECT_EQ(parsed["metric"], "accuracy");
  const json& two = parsed["runs"][1];
  EXPECT_EQ(two["strategy"], "parameter_server");
  EXPECT_DOUBLE_EQ(two["step_seconds"], 0.006);
  EXPECT_TRUE(two["predicted_step_seconds"].is_null());
  double sum = 0;
  for (const auto& [name, seconds] : two["parts_seconds"].items()) {
    sum += seconds.get<double>();
  }
  EXPECT_NEAR(sum, 0.006, 1e-12);
  EXPECT_EQ(two["bytes_per_rank_and_step"]["sent"], 2048);
  EXPECT_EQ(two["peak_memory_bytes"]["worker"], 31457280);
  EXPECT_EQ(two["losses"].size(), 5u);
  EXPECT_EQ(two["timeline"]["step"], 3);
  EXPECT_TRUE(parsed["runs"][0]["weight_distance"].is_null());
}

TEST_F(CompareReportTest, AMetricIsCalledAfterItsSet) {
  Made one = Single(), two = Two();
  EXPECT_THAT(ReportText(Report({Make(one), Make(two)})),
              HasSubstr("test accuracy"));
  one.test = "{}";
  one.validation = R"({"accuracy": 0.8})";
  const CompareReport mixed = Report({Make(one), Make(two)});
  EXPECT_THAT(ReportText(mixed), Not(HasSubstr("test accuracy")));
  EXPECT_THAT(ReportText(mixed), HasSubstr("on its validation set"));
  EXPECT_EQ(json::parse(ReportJson(mixed))["metric_set"], "");
  two.test = "{}";
  two.validation = one.validation;
  const CompareReport both = Report({Make(one), Make(two)});
  EXPECT_THAT(ReportText(both), HasSubstr("validation accuracy"));
  EXPECT_EQ(json::parse(ReportJson(both))["metric_set"], "validation");
}

// The report lacks only what needs runs of one job.
TEST_F(CompareReportTest, RunsOfOtherSettingsHaveNoDistance) {
  Made other = Two();
  other.global_batch = 80;
  const auto report = MakeCompareReport(
      {ReadRun(Make(Single())).value(), ReadRun(Make(other)).value()});
  TRIBUTARY_ASSERT_OK(report);
  EXPECT_FALSE(report->one_job);
  ASSERT_EQ(report->rows.size(), 2u);
  EXPECT_EQ(report->rows[0].name, "parameter_server one");
  EXPECT_THAT(report->rows[1].name, ::testing::EndsWith(" two"));
  EXPECT_TRUE(report->rows[1].parts);
  EXPECT_FALSE(report->rows[1].weight_distance);
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_THAT(report->notes[0], HasSubstr("differ in their settings (modified: "
                                          "data.global_batch_size: 40 -> 80)"));
  const std::string text = ReportText(*report);
  EXPECT_THAT(text, HasSubstr("loss"));
  EXPECT_THAT(text, Not(HasSubstr("distance")));
  EXPECT_THAT(text, Not(HasSubstr("single = 1")));
}

TEST_F(CompareReportTest, NothingIsNotCompared) {
  EXPECT_THAT(MakeCompareReport({}), StatusIs(kInvalid, "no runs"));
}

// The run's wait after backward is for its own update.
TEST_F(CompareReportTest, ARunThatSendsNothingHasNoCommunication) {
  Made alone = Two();
  for (std::string& line : alone.metrics) {
    line = absl::StrReplaceAll(line, {{"4096", "0"}, {"8192", "0"}});
  }
  alone.timeline = {
      R"({"step":3,"ranks":[{"rank":0,"begin_micros":0,"step_micros":6000,)"
      R"("spans":[["forward",0,2000],["backward",2000,4000],)"
      R"(["wait",4000,6000],["optimizer",4500,5000]]}]})"};
  const CompareRow row = Report({Make(alone)}).rows[0];
  ASSERT_TRUE(row.parts && row.drawn);
  EXPECT_EQ(row.parts->communication, 0);
  EXPECT_DOUBLE_EQ(row.parts->waiting, 0.0005);
  EXPECT_DOUBLE_EQ(row.parts->optimizer, 0.0015);
  const auto& spans = row.drawn->ranks[0].spans;
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[2].activity, "optimizer");
  EXPECT_DOUBLE_EQ(spans[2].begin_ms, 4);
  EXPECT_DOUBLE_EQ(spans[2].end_ms, 6);
}

TEST_F(CompareReportTest, WithoutASingleProcessThereIsNoDistance) {
  const CompareReport report = Report({Make(Two())});
  EXPECT_FALSE(report.rows[0].weight_distance);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("no run of one worker"));
}

TEST_F(CompareReportTest, DamagedLinesAreNamedAndHalfOnesLeftOut) {
  Made made = Two();
  const std::string folder = Make(made);
  Write("two/metrics.jsonl", made.metrics[0] + "\n{\"step\": 2, \"lo");
  EXPECT_EQ(ReadRun(folder)->steps.size(), 1u);
  Write("two/metrics.jsonl", made.metrics[0] + "\n[3]\n");
  EXPECT_THAT(ReadRun(folder), StatusIs(kInvalid, "metrics.jsonl:2"));
  EXPECT_THAT(ReadRun(Path("none")),
              StatusIs(absl::StatusCode::kNotFound, "is no run directory"));
}

TEST_F(CompareReportTest, OtherDataAndInitialWeightsAreNoted) {
  const auto notes = [&](const std::string& one, const std::string& two) {
    const std::vector<std::string> folders = {Make(Single()), Make(Two())};
    Write("one/environment.json", R"({"data": )" + one + "}");
    Write("two/environment.json", R"({"data": )" + two + "}");
    return Report(folders).notes;
  };
  const std::string kData = R"({"train": {"rows": 9, "checksum": "0000000a"},
                               "initial_weights": {"checksum": "0000000c"}})";
  EXPECT_THAT(notes(kData, kData), IsEmpty());
  EXPECT_THAT(notes(kData, "{}"), IsEmpty()) << "it is unknown";
  EXPECT_THAT(
      notes(kData, absl::StrReplaceAll(kData, {{"0000000a", "0000000b"}})),
      ElementsAre("the training data of " + Path("one") + " and " +
                  Path("two") +
                  " differ: their checksums are 0000000a and 0000000b"));
  EXPECT_THAT(
      notes(kData, absl::StrReplaceAll(kData, {{"0000000c", "0000000d"}})),
      ElementsAre(HasSubstr("the initial weights of ")));
}

TEST_F(CompareReportTest, ARunIsReadThoughItsDataAreGone) {
  const std::string folder = Make(Single());
  Write("one/job.yaml",
        absl::StrReplaceAll(Read("one/job.yaml"),
                            {{"synthetic: {kind: linear, rows: 100}",
                              "csv: {path: /gone.csv, columns: {label: a}}"}}));
  const auto run = ReadRun(folder);
  EXPECT_TRUE(run.ok()) << run.status();
}

TEST_F(CompareReportTest, ALossThatNobodyReportsIsNotKnown) {
  Made made = Single();
  for (std::string& line : made.metrics) {
    line = R"({"step":1,"loss":null,"no_loss":true})";
  }
  EXPECT_EQ(ReadRun(Make(made))->steps[4].loss, std::nullopt);
  const CompareReport report = Report({Path("one")});
  EXPECT_EQ(report.rows[0].loss, std::nullopt);
  EXPECT_TRUE(report.rows[0].losses.empty());
}

TEST_F(CompareReportTest, WhatIsNoNumberIsNotKnown) {
  Made made = Single();
  made.metrics[4] = R"({"step":5,"loss":null,"samples":"many"})";
  made.test = R"({"accuracy": null})";
  const RunData run = ReadRun(Make(made)).value();
  EXPECT_TRUE(std::isnan(run.steps[4].loss.value()));
  EXPECT_EQ(run.steps[4].samples, 0);
  EXPECT_TRUE(json::parse(ReportJson(Report({Path("one")})))["runs"][0]["loss"]
                  .is_null());
}

}  // namespace
}  // namespace tributary
