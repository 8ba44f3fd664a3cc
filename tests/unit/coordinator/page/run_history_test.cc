// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/run_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "coordinator/core/event_history.h"

namespace tributary {
namespace {

using Json = nlohmann::json;

StepRecord Step(int64_t step, std::optional<double> loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.seconds.step = 0.5;
  record.seconds.compute = 0.25;
  return record;
}

TEST(RunHistoryTest, TellsCurvesPartsAndEvents) {
  RunHistory history;
  history.AddStep(Step(1, 2.30258509));
  history.AddStep(Step(2, std::nan("")));
  history.AddStep(Step(3, std::nullopt));
  history.AddEvaluation({2, 1, 100, {{"accuracy", 0.875}}, "test"});
  EventHistory events([] { return int64_t{7}; });
  events.Add("worker 1 was lost");
  const Json json = Json::parse(history.ToJson(events.Messages()));
  EXPECT_EQ(json["steps_per_point"], 1);
  EXPECT_EQ(json["loss"], Json::parse("[[1, 2.3026], [2, null]]"));
  ASSERT_EQ(json["evaluations"].size(), 1u);
  EXPECT_EQ(json["evaluations"][0]["set"], "test");
  EXPECT_EQ(json["evaluations"][0]["metric"], "accuracy");
  EXPECT_EQ(json["evaluations"][0]["points"], Json::parse("[[2, 0.875]]"));
  EXPECT_EQ(json["mean_of_steps"], 3);
  EXPECT_EQ(json["step_parts"]["step_seconds"], 0.5);
  EXPECT_EQ(json["step_parts"]["compute_seconds"], 0.25);
  EXPECT_EQ(json["events"],
            Json::parse(R"([{"micros": 7, "text": "worker 1 was lost"}])"));
}

TEST(RunHistoryTest, WithoutAStepThereIsNoPart) {
  const Json json = Json::parse(RunHistory().ToJson({}));
  EXPECT_TRUE(json["loss"].empty());
  EXPECT_EQ(json["mean_of_steps"], 0);
  EXPECT_TRUE(json["step_parts"].empty());
}

TEST(RunHistoryTest, PartsAreOfTheNewestStepsAlone) {
  RunHistory history;
  StepRecord slow = Step(1, 1);
  slow.seconds.step = 100;
  history.AddStep(slow);
  for (int64_t step = 2; step <= 51; ++step) history.AddStep(Step(step, 1));
  const Json json = Json::parse(history.ToJson({}));
  EXPECT_EQ(json["mean_of_steps"], 50);
  EXPECT_EQ(json["step_parts"]["step_seconds"], 0.5);
}

// The longest answer: 400 points of each of 17 curves, all events with texts of
// the greatest length. 17 x 400 points of about 20 bytes and 64 x 450 bytes.
TEST(RunHistoryTest, TheAnswerIsBounded) {
  RunHistory history;
  EventHistory events;
  std::map<std::string, double> metrics;
  for (int m = 0; m < 100; ++m) metrics[absl::StrCat("metric-", m)] = 1.0 / 3;
  for (int64_t step = 1; step <= 10'000; ++step) {
    history.AddStep(Step(1'000'000 + step, 1.0 / 3));
    history.AddEvaluation({1'000'000 + step, 1, 1, metrics, "test"});
    events.Add(std::string(5000, 'x'));
  }
  const std::string answer = history.ToJson(events.Messages());
  const Json json = Json::parse(answer);
  EXPECT_EQ(json["evaluations"].size(), RunHistory::kMaxCurves);
  EXPECT_EQ(json["events"].size(), EventHistory::kMaxEvents);
  EXPECT_LT(answer.size(), 200'000u);
}

// After another coordinator has continued the run, all that follows is shown as
// if there had been one.
TEST(RunHistoryTest, ASavedHistoryGoesOnAsTheOneThatWasSaved) {
  RunHistory history;
  int64_t step = 1;
  for (; step <= 1003; ++step) {
    history.AddStep(Step(step, step == 77 ? std::nan("") : 1.0 / step));
  }
  v1::StepsShown shown;
  ASSERT_TRUE(shown.ParseFromString(history.SaveSteps().SerializeAsString()));
  RunHistory successor;
  successor.RestoreSteps(shown);
  EXPECT_EQ(successor.ToJson({}), history.ToJson({}));
  for (; step <= 2000; ++step) {
    history.AddStep(Step(step, 1.0 / step));
    successor.AddStep(Step(step, 1.0 / step));
  }
  EXPECT_EQ(successor.ToJson({}), history.ToJson({}));
}

TEST(RunHistoryTest, TextThatIsNotUtf8IsReplaced) {
  EventHistory events;
  events.Add("</script>\xff\n");
  const std::string answer = RunHistory().ToJson(events.Messages());
  EXPECT_EQ(answer.find('\n'), answer.size() - 1);
  EXPECT_EQ(Json::parse(answer)["events"][0]["text"],
            "</script>\xef\xbf\xbd\n");
}

}  // namespace
}  // namespace tributary
