// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/recorded_trace.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/run/trace_file.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

class RecordedTraceTest : public testing::TemporaryFolderTest {
 protected:
  RecordedTrace ReadBack(const std::string& lines) {
    Write("trace.jsonl", lines);
    const auto trace = ReadRecordedTrace(folder());
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.ok() ? *trace : RecordedTrace();
  }
};

// Event number n is of step n (from 0).
TraceBatch Batch(v1::Role role, uint32_t index, uint64_t first, int events,
                 ClockOffset::Estimate offset = {}, uint64_t clock = 0) {
  TraceBatch batch{.role = role,
                   .index = index,
                   .incarnation = index + 1,
                   .host = "h",
                   .clock = clock,
                   .offset = offset,
                   .first = first,
                   .recorded = first + events,
                   .dropped = 0,
                   .events = {}};
  for (int i = 0; i < events; ++i) {
    batch.events.push_back({.kind = TraceKind::kUpdate,
                            .step = static_cast<int64_t>(first) + i,
                            .shard = 1,
                            .block = 2,
                            .rank = 3,
                            .begin_micros = 10,
                            .end_micros = 20,
                            .bytes = 5});
  }
  return batch;
}

std::string Line(const TraceBatch& batch) { return TraceLines(batch)[0]; }

TEST_F(RecordedTraceTest, ReadsWhatTheCoordinatorWrote) {
  const TraceBatch worker = Batch(v1::ROLE_WORKER, 1, 0, 2, {-5, 9});
  const TraceBatch server = Batch(v1::ROLE_SERVER, 0, 0, 1);
  const RecordedTrace trace = ReadBack(Line(worker) + Line(server));
  ASSERT_EQ(trace.processes.size(), 2u);
  EXPECT_EQ(trace.processes[0].Name(), "server 0");
  EXPECT_EQ(trace.processes[1].Name(), "worker 1");
  EXPECT_EQ(trace.processes[1].host, "h");
  EXPECT_EQ(trace.processes[1].incarnation, 2u);
  EXPECT_EQ(trace.processes[1].events, worker.events);
  EXPECT_EQ(trace.processes[1].offset, (ClockOffset::Estimate{-5, 9}));
  EXPECT_EQ(trace.Steps(), (std::set<int64_t>{1, 2}));
  EXPECT_EQ(trace.lost(), 0u);
  EXPECT_FALSE(trace.full);
}

TEST_F(RecordedTraceTest, EventsThatTwoCoordinatorsWroteCountOnce) {
  const RecordedTrace trace = ReadBack(Line(Batch(v1::ROLE_WORKER, 0, 0, 3)) +
                                       Line(Batch(v1::ROLE_WORKER, 0, 1, 4)));
  ASSERT_EQ(trace.processes.size(), 1u);
  EXPECT_EQ(trace.processes[0].events.size(), 5u);
  EXPECT_EQ(trace.Steps(), (std::set<int64_t>{1, 2, 3, 4, 5}));
}

TEST_F(RecordedTraceTest, CountsEventsThatAreMissing) {
  TraceBatch last = Batch(v1::ROLE_WORKER, 0, 5, 1);  // 2 of 6 are here
  last.dropped = 10;
  const RecordedTrace trace = ReadBack(Line(Batch(v1::ROLE_WORKER, 0, 0, 1)) +
                                       Line(last) + "{\"full\":true}\n");
  EXPECT_EQ(trace.lost(), 14u);
  EXPECT_TRUE(trace.full);
}

TEST_F(RecordedTraceTest, TheMostCertainEstimateOfAClockCounts) {
  const RecordedTrace trace =
      ReadBack(Line(Batch(v1::ROLE_SERVER, 0, 0, 1, {100, 50}, 7)) +
               Line(Batch(v1::ROLE_SERVER, 0, 1, 1, {90, 20}, 7)) +
               Line(Batch(v1::ROLE_SERVER, 0, 2, 1, {70, 60}, 7)) +
               Line(Batch(v1::ROLE_WORKER, 0, 0, 1, {80, 30}, 7)) +
               Line(Batch(v1::ROLE_WORKER, 1, 0, 1, {500, 5}, 8)) +
               Line(Batch(v1::ROLE_WORKER, 2, 0, 1, {600, 5}, 0)));
  ASSERT_EQ(trace.processes.size(), 4u);
  EXPECT_EQ(trace.processes[0].offset, (ClockOffset::Estimate{90, 20}));
  EXPECT_EQ(trace.processes[1].offset, (ClockOffset::Estimate{90, 20}));
  EXPECT_EQ(trace.processes[2].offset, (ClockOffset::Estimate{500, 5}));
  EXPECT_EQ(trace.processes[3].offset, (ClockOffset::Estimate{600, 5}));
}

TEST_F(RecordedTraceTest, ImpossibleEventsAreLeftOutAndCounted) {
  std::string line =
      "{\"role\":\"worker\",\"index\":0,\"recorded\":9,\"events\":[";
  for (const char* event :
       {"[\"sleep\",1,0,0,0,1,2,3]", "[\"wait\",0,0,0,0,1,2,3]",
        "[\"wait\",1,-2,0,0,1,2,3]", "[\"wait\",1,0,0,0,2,1,3]",
        "[\"wait\",1,0,0,0,1,2,-1]", "[\"wait\",1,0,0,0,1,2]", "7",
        "[\"wait\",1,0,0,0,1,1e300,3]", "[\"wait\",1,0,0,0,1,2,3]"}) {
    absl::StrAppend(&line, line.back() == '[' ? "" : ",", event);
  }
  const RecordedTrace trace = ReadBack(line + "]}\n{\"role\":\"cook\"}\n{}\n");
  ASSERT_EQ(trace.processes.size(), 1u);
  EXPECT_EQ(trace.processes[0].events.size(), 1u);
  EXPECT_EQ(trace.lost(), 8u);
}

TEST_F(RecordedTraceTest, ErrorsNameTheFile) {
  EXPECT_TRUE(absl::IsNotFound(ReadRecordedTrace(folder()).status()));
  Write("trace.jsonl", "{}\n7\n");
  EXPECT_EQ(std::string(ReadRecordedTrace(folder()).status().message()),
            folder() + "/trace.jsonl:2: wanted a JSON object");
}

TEST_F(RecordedTraceTest, ALineWithoutItsEndIsIgnored) {
  const std::string line = Line(Batch(v1::ROLE_WORKER, 0, 0, 1));
  EXPECT_EQ(ReadBack(line + line.substr(0, 40)).processes.size(), 1u);
}

}  // namespace
}  // namespace tributary
