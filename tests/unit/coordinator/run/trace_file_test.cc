// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/trace_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using nlohmann::json;

TraceBatch Batch(size_t events) {
  return {.role = v1::ROLE_WORKER,
          .index = 1,
          .incarnation = 4,
          .host = "node-b",
          .clock = 0x1f,
          .offset = {-12, 80},
          .first = 5,
          .recorded = 9,
          .dropped = 2,
          .events = std::vector<TraceEvent>(events, {.kind = TraceKind::kFlight,
                                                     .step = 6,
                                                     .shard = 0,
                                                     .block = 3,
                                                     .begin_micros = 100,
                                                     .end_micros = 130,
                                                     .bytes = 64})};
}

class TraceFileTest : public testing::TemporaryFolderTest {};

TEST_F(TraceFileTest, ALineHasTheProcessItsClockAndItsEvents) {
  EXPECT_EQ(TraceLines(Batch(1)),
            std::vector<std::string>{
                "{\"role\":\"worker\",\"index\":1,\"incarnation\":4,"
                "\"host\":\"node-b\",\"clock\":\"000000000000001f\","
                "\"offset_micros\":-12,\"uncertainty_micros\":80,"
                "\"recorded\":9,\"dropped\":2,\"first\":5,"
                "\"events\":[[\"flight\",7,0,3,-1,100,130,64]]}\n"});
}

TEST_F(TraceFileTest, LongBatchesAreCutIntoShortLines) {
  TraceBatch batch = Batch(4096);
  constexpr int64_t kLong = std::numeric_limits<int64_t>::min();
  for (TraceEvent& event : batch.events) {
    event = {.kind = TraceKind::kCommunication,
             .step = kLong,
             .shard = INT32_MIN,
             .block = INT32_MIN,
             .rank = INT32_MIN,
             .begin_micros = kLong,
             .end_micros = kLong,
             .bytes = UINT64_MAX};
  }
  const std::vector<std::string> lines = TraceLines(batch);
  uint64_t next = 5;
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), size_t{1} << 16);
    const json object = json::parse(line);
    EXPECT_EQ(object["first"], next);
    next += object["events"].size();
  }
  EXPECT_EQ(next, 5u + 4096u);
}

TEST_F(TraceFileTest, IsCreatedWithItsFirstLineAndContinued) {
  const std::string path = Path("trace.jsonl");
  {
    TraceFile file(path);
    EXPECT_TRUE(file.Flush().ok());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(file.Add(Batch(1)).ok());
    EXPECT_TRUE(file.Flush().ok());
  }
  const std::string line = TraceLines(Batch(1))[0];
  EXPECT_EQ(Read("trace.jsonl"), line);
  TraceFile again(path);
  EXPECT_TRUE(again.Add(Batch(1)).ok());
  EXPECT_TRUE(again.Flush().ok());
  EXPECT_EQ(Read("trace.jsonl"), line + line);
}

TEST_F(TraceFileTest, TakesNoMoreLinesAtItsLimit) {
  const std::string line = TraceLines(Batch(1))[0];
  const auto add = [&] {
    TraceFile file(Path("trace.jsonl"), 2 * line.size());
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(file.Add(Batch(1)).ok());
    EXPECT_TRUE(file.Flush().ok());
  };
  add();
  EXPECT_EQ(Read("trace.jsonl"), line + line + "{\"full\":true}\n");
  add();  // after a restart, too
  EXPECT_EQ(Read("trace.jsonl"), line + line + "{\"full\":true}\n");
}

}  // namespace
}  // namespace tributary
