// SPDX-License-Identifier: Apache-2.0
// A traced run of real processes, and `tributary trace`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Program;

constexpr int kTraceServers = 2;
constexpr int kWorkers = 2;

// Each server has several blocks.
constexpr char kTraceJob[] = R"(name: small
model:
  sequential:
    - linear: {in: 16, out: 256}
    - tanh
    - linear: {in: 256, out: 256}
    - tanh
    - linear: {in: 256, out: 1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1000}}
  batch_size: 20
training: {steps: 8, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
cluster: {servers: 2, workers: 2}
)";

struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

// (step, server, block), and the same with a rank.
using BlockKey = std::tuple<int, int, int>;
using RankKey = std::tuple<int, int, int, int>;

// The slices of a trace, by what they show. A repeated slice fails the test.
struct Drawn {
  std::map<RankKey, Span> queued, sent, stored, checked, answered;
  std::map<BlockKey, Span> updated;
  std::map<std::pair<int, int>, std::set<std::string>>
      activities;  // step, rank
};

class TraceTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override { Write("job.yaml", kTraceJob); }

  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), Program("tributary"));
    const testing::ProcessResult result = testing::RunProcess(words);
    output_ = result.output;
    return result.exit_code;
  }
  int Train(const std::string& run, std::vector<std::string> words = {}) {
    words.insert(words.begin(),
                 {"train", Path("job.yaml"), "--run-dir", Path(run)});
    return Run(std::move(words));
  }
  std::string WeightsSha256(const std::string& run) {
    return json::parse(Read(run + "/summary.json"))["weights_sha256"];
  }

  Drawn ReadTrace(const std::string& file) {
    const json trace = json::parse(Read(file));
    std::map<int, std::string> names;
    Drawn drawn;
    for (const json& event : trace["traceEvents"]) {
      if (event["name"] == "process_name") {
        names[event["pid"]] = event["args"]["name"];
      }
      if (event["ph"] == "X") AddSlice(names[event["pid"]], event, &drawn);
    }
    EXPECT_EQ(trace["otherData"]["lost_events"], 0);
    ExpectOffsetsOfOneMachine(trace["otherData"]["clocks"]);
    return drawn;
  }

  static void AddSlice(const std::string& process, const json& event,
                       Drawn* drawn) {
    const json& args = event["args"];
    const int64_t begin = event["ts"];
    const Span span{begin, begin + event["dur"].get<int64_t>()};
    const std::string kind = event["cat"];
    const int step = args["step"];
    const int index = process[7] - '0';  // "worker 1 on HOST"
    if (!args.contains("block")) {
      drawn->activities[{step, index}].insert(kind);
      return;
    }
    const BlockKey block = {step, args["server"], args["block"]};
    const bool is_worker = process.rfind("worker", 0) == 0;
    const int rank = is_worker ? index : args.value("rank", -1);
    const RankKey key = std::tuple_cat(block, std::make_tuple(rank));
    std::map<RankKey, Span>* const spans = kind == "queue"    ? &drawn->queued
                                           : kind == "flight" ? &drawn->sent
                                           : kind == "store"  ? &drawn->stored
                                           : kind == "check"  ? &drawn->checked
                                           : kind == "answer" ? &drawn->answered
                                                              : nullptr;
    if (spans != nullptr) {
      EXPECT_TRUE(spans->emplace(key, span).second) << kind << event;
      EXPECT_GT(args["bytes"], 0) << event;
    }
    if (kind == "update") {
      EXPECT_TRUE(drawn->updated.emplace(block, span).second) << event;
    }
  }

  // All processes of this test read the coordinator's clock: the true offset
  // is 0.
  static void ExpectOffsetsOfOneMachine(const json& clocks) {
    EXPECT_EQ(clocks.size(), size_t{kTraceServers + kWorkers});
    for (const json& clock : clocks) {
      const int64_t uncertainty = clock["uncertainty_micros"];
      EXPECT_LE(std::abs(clock["offset_micros"].get<int64_t>()), uncertainty)
          << clock;
    }
  }

  std::string output_;
};

void ExpectOrder(const Drawn& drawn, const BlockKey& block) {
  ASSERT_EQ(drawn.updated.count(block), 1u);
  const Span& update = drawn.updated.at(block);
  for (int rank = 0; rank < kWorkers; ++rank) {
    const RankKey key = std::tuple_cat(block, std::make_tuple(rank));
    for (const auto* spans : {&drawn.queued, &drawn.sent, &drawn.stored,
                              &drawn.checked, &drawn.answered}) {
      ASSERT_EQ(spans->count(key), 1u) << "rank " << rank;
    }
    const Span& sent = drawn.sent.at(key);
    const Span& checked = drawn.checked.at(key);
    const Span& answered = drawn.answered.at(key);
    EXPECT_EQ(drawn.queued.at(key).end, sent.begin);
    EXPECT_LE(sent.begin, checked.begin);
    EXPECT_LE(checked.end, update.begin);
    EXPECT_LE(update.end, answered.begin);
    EXPECT_LE(answered.begin, sent.end);
    EXPECT_EQ(sent.end, drawn.stored.at(key).begin);
  }
}

TEST_F(TraceTest, ShowsTheWayOfEveryBlockAndChangesNoWeight) {
  ASSERT_EQ(Train("plain"), 0) << output_;
  ASSERT_EQ(Train("traced", {"--trace", "3-5", "--set",
                             "strategy.parameter_server.bucket_bytes=64KiB"}),
            0)
      << output_;
  EXPECT_EQ(WeightsSha256("traced"), WeightsSha256("plain"));
  EXPECT_FALSE(std::filesystem::exists(Path("plain/trace.jsonl")));

  ASSERT_EQ(Run({"trace", Path("traced"), "--steps", "3-5", "--output",
                 Path("out.json")}),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("steps 3-5 of 4 processes"));
  const Drawn drawn = ReadTrace("out.json");
  // Every step has the same blocks, and each server has several.
  std::set<std::pair<int, int>> blocks;
  for (const auto& [key, span] : drawn.checked) {
    blocks.insert({std::get<1>(key), std::get<2>(key)});
  }
  EXPECT_EQ(blocks.count({0, 1}), 1u);
  EXPECT_EQ(blocks.count({1, 1}), 1u);
  EXPECT_EQ(drawn.updated.size(), 3 * blocks.size());
  for (int step = 3; step <= 5; ++step) {
    for (const auto& [server, block] : blocks) {
      SCOPED_TRACE(::testing::Message() << "step " << step << ", server "
                                        << server << ", block " << block);
      ExpectOrder(drawn, {step, server, block});
    }
    for (int rank = 0; rank < kWorkers; ++rank) {
      EXPECT_EQ(drawn.activities.at({step, rank}),
                (std::set<std::string>{"step", "data", "forward", "backward",
                                       "wait"}));
    }
  }
}

TEST_F(TraceTest, StepsThatWereNotRecordedAreAnErrorThatSaysWhatToDo) {
  ASSERT_EQ(Train("run", {"--set", "trace={first_step: 3, last_step: 4}"}), 0)
      << output_;
  EXPECT_EQ(Run({"trace", Path("run"), "--steps", "4-6"}), 2);
  EXPECT_THAT(output_,
              HasSubstr("recorded the steps 3-4, not step 5; train with "
                        "--trace 4-6 to record these"));
  EXPECT_EQ(Run({"trace", Path("run")}), 0) << output_;
  EXPECT_TRUE(std::filesystem::exists(Path("run/trace-3-4.json")));
  EXPECT_EQ(Run({"trace", Path("nowhere")}), 2);
  EXPECT_THAT(output_, HasSubstr("is no run directory"));
}

TEST_F(TraceTest, RanksWithoutServersShowTheirExchange) {
  ASSERT_EQ(Train("run", {"--trace", "2-3", "--set", "strategy=all_reduce"}), 0)
      << output_;
  EXPECT_EQ(Run({"trace", Path("run"), "--output", Path("run/trace.jsonl")}),
            2);
  EXPECT_THAT(output_, HasSubstr("is a file of the run directory"));
  ASSERT_EQ(Run({"trace", Path("run"), "--output", Path("out.json")}), 0)
      << output_;
  std::map<std::string, int> kinds;
  const json trace = json::parse(Read("out.json"));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++kinds[event["cat"]];
  }
  EXPECT_EQ(kinds["step"], 2 * kWorkers);
  EXPECT_EQ(kinds["forward"], 2 * kWorkers);
  EXPECT_GE(kinds["communication"], 2 * kWorkers);
  EXPECT_GE(kinds["optimizer"], 2 * kWorkers);
}

}  // namespace
}  // namespace tributary
