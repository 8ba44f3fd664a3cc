// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TraceEvent Event(TraceKind kind, int block, int rank, int64_t begin,
                 int64_t end, int64_t step = 0) {
  return {.kind = kind,
          .step = step,
          .shard = block < 0 ? -1 : 0,
          .block = block,
          .rank = rank,
          .begin_micros = begin,
          .end_micros = end,
          .bytes = 0};
}

// Server 0 and worker 1, whose clock is 1000 behind the coordinator's.
class ChromeTraceTest : public ::testing::Test {
 protected:
  void Draw(StepNumbers steps = {1, 1}) {
    drawn_ = json::parse(ChromeTrace(trace_, steps));
    std::map<std::pair<int, int>, std::string> lanes;
    for (const json& event : drawn_["traceEvents"]) {
      const std::pair<int, int> row = {event["pid"], event["tid"]};
      if (event["name"] == "thread_name") lanes[row] = event["args"]["name"];
      if (event["ph"] == "X") {
        last_ = event;
        slices_.push_back(absl::StrCat(
            lanes[row], ": ", event["name"].get<std::string>(), " ",
            event["ts"].get<int64_t>(), " ", event["dur"].get<int64_t>()));
      }
    }
  }
  std::vector<TraceEvent>& server() { return trace_.processes[0].events; }
  std::vector<TraceEvent>& worker() { return trace_.processes[1].events; }

  RecordedTrace trace_{
      .processes = {{.is_server = true, .host = "a", .offset = {0, 10}},
                    {.index = 1, .host = "b", .offset = {1000, 20}}},
      .full = false};
  json drawn_;
  json last_;                        // slice
  std::vector<std::string> slices_;  // "lane: name begin duration"
};

TEST_F(ChromeTraceTest, AServersWaitFollowsFromItsEvents) {
  server() = {Event(TraceKind::kCheck, 3, 1, 100, 105),
              Event(TraceKind::kCheck, 3, 0, 140, 142),
              Event(TraceKind::kCheck, 3, 2, 150, 152),
              Event(TraceKind::kUpdate, 3, -1, 153, 160),
              Event(TraceKind::kAnswer, 3, 1, 161, 163)};
  Draw();
  EXPECT_THAT(slices_, ElementsAre("work: check rank 1, block 3 0 5",
                                   "work: check rank 0, block 3 40 2",
                                   "work: check rank 2, block 3 50 2",
                                   "work: sum and update block 3 53 7",
                                   "work: answer rank 1, block 3 61 2",
                                   "waits: block 3 waits for rank 0, 2 5 45"));
  EXPECT_EQ(last_["cat"], "wait");
  EXPECT_EQ(
      last_["args"],
      (json{{"step", 1}, {"server", 0}, {"block", 3}, {"ranks", {0, 2}}}));
}

TEST_F(ChromeTraceTest, AnotherStepOfTheBlockWaitsByItself) {
  server() = {Event(TraceKind::kCheck, 3, 1, 100, 105),
              Event(TraceKind::kUpdate, 3, -1, 105, 106),
              Event(TraceKind::kCheck, 3, 1, 110, 112, /*step=*/1),
              Event(TraceKind::kCheck, 3, 0, 120, 121, /*step=*/1),
              Event(TraceKind::kUpdate, 3, -1, 122, 123, /*step=*/1)};
  Draw({1, 2});
  EXPECT_EQ(slices_.back(), "waits: block 3 waits for rank 0 12 8");
  EXPECT_EQ(slices_.size(), 6u);
}

TEST_F(ChromeTraceTest, ARankThatIsAheadWaitsForItsAnswer) {
  server() = {Event(TraceKind::kCheck, 3, 1, 100, 105),
              Event(TraceKind::kUpdate, 3, 1, 105, 110),
              Event(TraceKind::kAnswer, 3, 1, 130, 131)};
  Draw();
  EXPECT_EQ(slices_.back(),
            "waits: rank 1, block 3, waits for slower ranks 10 20");
}

TEST_F(ChromeTraceTest, AWorkersStepHoldsItsActivities) {
  worker() = {Event(TraceKind::kData, -1, -1, 10, 12),
              Event(TraceKind::kForward, -1, -1, 12, 20),
              Event(TraceKind::kCommunication, -1, -1, 15, 18),
              Event(TraceKind::kCommunication, -1, -1, 16, 22)};
  Draw();
  EXPECT_THAT(
      slices_,
      ElementsAre("training: step 1 0 10", "training: data 0 2",
                  "training: forward 2 8", "communication: communication 5 3",
                  "communication 2: communication 6 6"));
}

TEST_F(ChromeTraceTest, PushesThatOverlapGetLanesAndReplaceCommunication) {
  worker() = {Event(TraceKind::kQueue, 0, -1, 10, 11),
              Event(TraceKind::kFlight, 0, -1, 11, 20),
              Event(TraceKind::kStore, 0, -1, 20, 21),
              Event(TraceKind::kQueue, 1, -1, 12, 12),
              Event(TraceKind::kFlight, 1, -1, 12, 15),
              Event(TraceKind::kStore, 1, -1, 15, 16),
              Event(TraceKind::kQueue, 2, -1, 21, 22),
              Event(TraceKind::kFlight, 2, -1, 22, 23),
              Event(TraceKind::kStore, 2, -1, 23, 24),
              Event(TraceKind::kCommunication, -1, -1, 10, 20)};
  Draw();
  EXPECT_THAT(slices_, ElementsAre("blocks: block 0 of server 0 0 11",
                                   "blocks: waits to be sent 0 1",
                                   "blocks: sent, not answered 1 9",
                                   "blocks: weights into the model 10 1",
                                   "blocks: block 2 of server 0 11 3",
                                   "blocks: waits to be sent 11 1",
                                   "blocks: sent, not answered 12 1",
                                   "blocks: weights into the model 13 1",
                                   "blocks 2: block 1 of server 0 2 4",
                                   "blocks 2: waits to be sent 2 0",
                                   "blocks 2: sent, not answered 2 3",
                                   "blocks 2: weights into the model 5 1"));
}

TEST_F(ChromeTraceTest, OffsetsMoveAProcessAndAreInTheMetadata) {
  server() = {Event(TraceKind::kCheck, 0, 1, 1015, 1016)};
  worker() = {Event(TraceKind::kForward, -1, -1, 12, 20)};
  trace_.processes[1].lost = 4;
  Draw();
  // The worker's 12 is the coordinator's 1012.
  EXPECT_EQ(slices_[0], "work: check rank 1, block 0 3 1");
  EXPECT_EQ(slices_[1], "training: step 1 0 8");
  const json& other = drawn_["otherData"];
  EXPECT_EQ(other["lost_events"], 4);
  EXPECT_EQ(other["clocks"][1]["process"], "worker 1");
  EXPECT_EQ(other["clocks"][1]["offset_micros"], 1000);
  EXPECT_EQ(other["clocks"][1]["uncertainty_micros"], 20);
  EXPECT_EQ(drawn_["traceEvents"][0]["args"]["name"], "server 0 on a");
}

TEST_F(ChromeTraceTest, ArrowsLeadToTheServerAndBack) {
  server() = {Event(TraceKind::kCheck, 2, 1, 1013, 1014),
              Event(TraceKind::kCheck, 2, 0, 1020, 1021),  // no such worker
              Event(TraceKind::kAnswer, 2, 1, 1030, 1031)};
  worker() = {Event(TraceKind::kQueue, 2, -1, 10, 11),
              Event(TraceKind::kFlight, 2, -1, 11, 33),
              Event(TraceKind::kStore, 2, -1, 33, 35)};
  Draw();
  std::vector<std::string> arrows;
  for (const json& event : drawn_["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase != "s" && phase != "f") continue;
    arrows.push_back(absl::StrCat(phase, " ", event["name"].get<std::string>(),
                                  " ", event["id"].get<int>(), " pid ",
                                  event["pid"].get<int>(), " ",
                                  event["ts"].get<int64_t>()));
  }
  EXPECT_THAT(arrows,
              ElementsAre("s push 1 pid 2 1", "f push 1 pid 1 3",
                          "s answer 2 pid 1 20", "f answer 2 pid 2 23"));
}

TEST_F(ChromeTraceTest, OtherStepsAreLeftOut) {
  worker() = {Event(TraceKind::kForward, -1, -1, 12, 20, /*step=*/3)};
  Draw();
  EXPECT_THAT(slices_, IsEmpty());
  Draw({4, 4});
  EXPECT_EQ(slices_.size(), 2u);
}

TEST_F(ChromeTraceTest, AReplacementIsAProcessOfItsOwn) {
  trace_.processes.push_back(trace_.processes[1]);
  trace_.processes[2].incarnation = 9;
  Draw();
  std::vector<std::string> names;
  for (const json& event : drawn_["traceEvents"]) {
    if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(names, ElementsAre("server 0 on a", "worker 1 on b",
                                 "worker 1 on b, incarnation 9"));
}

}  // namespace
}  // namespace tributary
