// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/run_directory.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/files/safetensors.h"
#include "common/job/job_file.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

constexpr std::time_t kStarted = 1700000000;

v1::JobSpec JobOfTheRun() {
  return ParseJob(
             "name: my job\n"
             "model: {sequential: [{linear: {in: 20, out: 1}}]}\n"
             "data:\n"
             "  train: {synthetic: {kind: linear, rows: 100}}\n"
             "  batch_size: 10\n"
             "training: {steps: 5, loss: mse, optimizer: {sgd: "
             "{learning_rate: 0.1}}}\n",
             "job.yaml")
      .value();
}

// Each test in a folder of its own, which is also the working directory.
class RunDirectoryTest : public testing::TemporaryFolderTest {
 protected:
  RunDirectoryTest() : before_(fs::current_path()) {
    fs::current_path(folder());
  }
  ~RunDirectoryTest() override { fs::current_path(before_); }

  static std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) {
      std::string name = entry.path().filename();
      if (name.rfind("events.out.tfevents.", 0) == 0) name = "events";
      names.push_back(name);
    }
    return names;
  }

 private:
  const fs::path before_;
};

TEST_F(RunDirectoryTest, DefaultNameHoldsJobAndLocalTimeAndIsUnique) {
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S",
                std::localtime(&kStarted));
  const std::string name = std::string("runs/my-job-") + stamp;
  EXPECT_EQ(RunDirectory::Create("", JobOfTheRun(), kStarted).value()->path(),
            name);
  EXPECT_EQ(RunDirectory::Create("", JobOfTheRun(), kStarted).value()->path(),
            name + "-2");
  EXPECT_EQ(RunDirectory::Create("", JobOfTheRun(), kStarted).value()->path(),
            name + "-3");
}

TEST_F(RunDirectoryTest, NameCannotLeaveTheFolder) {
  v1::JobSpec job = JobOfTheRun();
  job.set_name("../../etc/x");
  const auto run = RunDirectory::Create("", job, kStarted).value();
  EXPECT_EQ(run->path().rfind("runs/-.-..-etc-x-", 0), 0u) << run->path();
}

TEST_F(RunDirectoryTest, GivenPathMayBeNewOrEmptyButHoldNothing) {
  fs::create_directory("empty");
  EXPECT_TRUE(RunDirectory::Create("empty", JobOfTheRun(), kStarted).ok());
  EXPECT_TRUE(RunDirectory::Create("a/b/c", JobOfTheRun(), kStarted).ok());
  const auto again = RunDirectory::Create("a/b/c", JobOfTheRun(), kStarted);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.status().message()),
              HasSubstr("a/b/c is not empty"));
  Write("file", "x");
  EXPECT_EQ(
      RunDirectory::Create("file", JobOfTheRun(), kStarted).status().code(),
      absl::StatusCode::kAlreadyExists);
}

TEST_F(RunDirectoryTest, HoldsEverythingAfterARun) {
  auto run = RunDirectory::Create("run", JobOfTheRun(), kStarted).value();
  StepRecord first, second;
  first.step = 1;
  second.step = 2;
  second.ranks.resize(1);  // this one is drawn
  ASSERT_TRUE(run->AddSteps({first, second}, kStarted + 1).ok());
  EXPECT_EQ(Read("run/timeline.jsonl"), "{\"step\":2,\"ranks\":[]}\n");
  ASSERT_TRUE(
      run->AddEvaluations({{2, 1, 10, {{"r2", 0.5}}}}, kStarted + 2).ok());
  FinalWeights weights;
  weights.parameters = {{"0.weight", {1, 2}}, {"0.bias", {1}}};
  weights.tensors = {{1, 2}, {3}};
  EXPECT_EQ(run->SaveWeights(weights).value(),
            // sha256sum of the bytes of 1.0f, 2.0f, 3.0f.
            "8e628779e6a74ee0b36991c10158f63cafec7d340ad4e075592502c8708524dd");
  RunSummary summary;
  summary.status = "done";
  ASSERT_TRUE(run->SaveSummary(summary).ok());
  EXPECT_THAT(Names("run"),
              UnorderedElementsAre("job.yaml", "metrics.jsonl",
                                   "timeline.jsonl", "events", "events.jsonl",
                                   "logs", "weights.safetensors",
                                   "summary.json", "coordinator.lock"));
  const auto read =
      ReadSafetensors("run/weights.safetensors", weights.parameters).value();
  EXPECT_EQ(read, weights.tensors);
}

TEST_F(RunDirectoryTest, ResolvedJobReadsBackAsTheSameJob) {
  RunDirectory::Create("run", JobOfTheRun(), kStarted).value();
  const v1::JobSpec read = ReadJobFile("run/job.yaml").value();
  EXPECT_EQ(read.SerializeAsString(), JobOfTheRun().SerializeAsString());
}

TEST_F(RunDirectoryTest, MetricsCanBeReadWhileTheRunGoesOn) {
  auto run = RunDirectory::Create("run", JobOfTheRun(), kStarted).value();
  EXPECT_EQ(Read("run/metrics.jsonl"), "");
  for (int64_t step = 1; step <= 3; ++step) {
    StepRecord record;
    record.step = step;
    ASSERT_TRUE(run->AddSteps({record}, kStarted).ok());
    std::istringstream lines(Read("run/metrics.jsonl"));
    int64_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(nlohmann::json::parse(line)["step"], ++count);
    }
    EXPECT_EQ(count, step);
  }
}

TEST_F(RunDirectoryTest, LinesThatWereBeingWrittenAreCutOffBeforeOthersFollow) {
  StepRecord record;
  record.step = 1;
  record.ranks.resize(1);
  auto run = RunDirectory::Create("run", JobOfTheRun(), kStarted).value();
  ASSERT_TRUE(run->AddSteps({record}, kStarted).ok());
  run.reset();
  const std::string metrics = Read("run/metrics.jsonl");
  const std::string timeline = Read("run/timeline.jsonl");
  Write("run/metrics.jsonl", metrics + "{\"step\":2,\"ep");
  Write("run/timeline.jsonl", timeline + "{\"step\":2,\"ra");
  run = RunDirectory::Open(RunLock::Take("run").value(), kStarted).value();
  EXPECT_EQ(run->recorded().step, 1);
  EXPECT_EQ(Read("run/metrics.jsonl"), metrics);
  EXPECT_EQ(Read("run/timeline.jsonl"), timeline);
}

TEST_F(RunDirectoryTest, ASuccessorFindsTheStepsAndTheNewestEvents) {
  auto run = RunDirectory::Create("run", JobOfTheRun(), kStarted).value();
  std::vector<HistoryEvent> events;
  for (int64_t i = 0; i < 100; ++i) {
    events.push_back({1'000'000 * kStarted + i, absl::StrCat("event ", i),
                      /*checkpoint=*/i == 99});
  }
  ASSERT_TRUE(run->AddEvents(events).ok());
  StepRecord step;
  for (step.step = 1; step.step <= 3; ++step.step) {
    step.loss = 0.5 * static_cast<double>(step.step);
    step.seconds.step = 2;
    step.samples = 10;
    ASSERT_TRUE(run->AddSteps({step}, kStarted).ok());
  }
  EXPECT_TRUE(run->earlier_events().empty());
  run.reset();
  const std::string written = Read("run/events.jsonl");
  Write("run/events.jsonl", "no JSON\n" + written + "{\"time\":\"2026");
  std::vector<double> losses;
  run = RunDirectory::Open(RunLock::Take("run").value(), kStarted,
                           {.on_step =
                                [&losses](const StepRecord& record) {
                                  losses.push_back(record.loss.value());
                                  EXPECT_EQ(record.seconds.step, 2);
                                }})
            .value();
  EXPECT_EQ(losses, (std::vector<double>{0.5, 1, 1.5}));
  EXPECT_EQ(run->recorded().samples, 30u);
  EXPECT_EQ(run->recorded().training_seconds, 6);
  ASSERT_EQ(run->earlier_events().size(), EventHistory::kMaxEvents);
  EXPECT_EQ(run->earlier_events().front().text, "event 36");
  const HistoryEvent& last = run->earlier_events().back();
  EXPECT_EQ(last.text, "event 99");
  EXPECT_EQ(last.micros, 1'000'000 * kStarted + 99);
  EXPECT_TRUE(last.checkpoint);
  EXPECT_EQ(Read("run/events.jsonl"), "no JSON\n" + written);  // cut
}

TEST_F(RunDirectoryTest, PlaceThatCannotBeWrittenIsNamed) {
  Write("file", "x");
  const auto run = RunDirectory::Create("file/run", JobOfTheRun(), kStarted);
  EXPECT_FALSE(run.ok());
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("cannot create file/run"));
}

}  // namespace
}  // namespace tributary
