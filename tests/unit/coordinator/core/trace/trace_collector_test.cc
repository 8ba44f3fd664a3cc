// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/trace/trace_collector.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

class TraceCollectorTest : public ::testing::Test {
 protected:
  TraceCollectorTest() {
    job_.mutable_cluster()->set_servers(2);
    job_.mutable_cluster()->set_workers(3);
    job_.mutable_trace()->set_first_step(5);
    job_.mutable_trace()->set_last_step(6);
    Join("a");
  }

  // A process takes the place of server 0.
  void Join(const std::string& instance) {
    v1::RegisterRequest request;
    request.set_role(v1::ROLE_SERVER);
    request.set_wanted_index(0);
    request.set_instance(instance);
    request.set_address("127.0.0.1:7000");
    request.set_host("node-a");
    request.set_pid(5);
    incarnation_ = membership_.Register(request, 0).value()->incarnation;
  }

  v1::HeartbeatRequest Report(uint64_t first, int events) const {
    v1::HeartbeatRequest request;
    request.set_role(v1::ROLE_SERVER);
    request.set_incarnation(incarnation_);
    v1::TraceReport& report = *request.mutable_trace();
    report.set_first(first);
    report.set_recorded(first + events);
    report.set_offset_micros(-40);
    report.set_uncertainty_micros(8);
    report.set_clock(3);
    for (int i = 0; i < events; ++i) {
      v1::TraceEvent& event = *report.add_events();
      event.set_kind(v1::TRACE_EVENT_KIND_CHECK);
      event.set_step(5);
      event.set_shard(1);
      event.set_block(static_cast<uint32_t>(first) + i);
      event.set_rank(2);
      event.set_begin_micros(100);
      event.set_duration_micros(30);
      event.set_bytes(64);
    }
    return request;
  }
  bool Take(const v1::HeartbeatRequest& request) {
    return collector_.Take(request, membership_);
  }
  // The blocks of all events since the last call.
  std::vector<int> Blocks() {
    std::vector<int> blocks;
    for (const TraceBatch& batch : collector_.TakeBatches()) {
      for (const TraceEvent& event : batch.events) {
        blocks.push_back(event.block);
      }
    }
    return blocks;
  }

  v1::JobSpec job_;
  Membership membership_{2, 3, 1'000'000};
  uint64_t incarnation_ = 0;
  TraceCollector collector_{job_};
};

TEST_F(TraceCollectorTest, ABatchSaysWhoseEventsTheseAre) {
  EXPECT_TRUE(Take(Report(0, 1)));
  const std::vector<TraceBatch> batches = collector_.TakeBatches();
  ASSERT_EQ(batches.size(), 1u);
  const TraceBatch& batch = batches[0];
  EXPECT_EQ(batch.role, v1::ROLE_SERVER);
  EXPECT_EQ(batch.index, 0u);
  EXPECT_EQ(batch.incarnation, incarnation_);
  EXPECT_EQ(batch.host, "node-a");
  EXPECT_EQ(batch.clock, 3u);
  EXPECT_EQ(batch.offset, (ClockOffset::Estimate{-40, 8}));
  EXPECT_EQ(batch.recorded, 1u);
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0], (TraceEvent{.kind = TraceKind::kCheck,
                                         .step = 4,  // from 0
                                         .shard = 1,
                                         .block = 0,
                                         .rank = 2,
                                         .begin_micros = 100,
                                         .end_micros = 130,
                                         .bytes = 64}));
  EXPECT_TRUE(collector_.TakeBatches().empty());
}

TEST_F(TraceCollectorTest, ARepeatedReportCountsOnce) {
  EXPECT_TRUE(Take(Report(0, 2)));
  EXPECT_TRUE(Take(Report(0, 2)));
  EXPECT_TRUE(Take(Report(1, 2)));  // overlaps by one
  EXPECT_EQ(Blocks(), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(Take(Report(7, 1)));  // an earlier coordinator took the others
  EXPECT_EQ(Blocks(), (std::vector<int>{7}));
}

TEST_F(TraceCollectorTest, AReplacementNumbersItsEventsAnew) {
  EXPECT_TRUE(Take(Report(0, 2)));
  const v1::HeartbeatRequest late = Report(2, 1);
  ASSERT_NE(membership_.Expel(v1::ROLE_SERVER, 0, 5), nullptr);
  Join("b");
  EXPECT_FALSE(Take(late));
  EXPECT_TRUE(Take(Report(0, 1)));
  EXPECT_EQ(Blocks(), (std::vector<int>{0, 1, 0}));
}

TEST_F(TraceCollectorTest, OnlyHoldersOfPlacesAreHeard) {
  v1::HeartbeatRequest wrong = Report(0, 1);
  wrong.set_incarnation(incarnation_ + 1);
  EXPECT_FALSE(Take(wrong));
  wrong = Report(0, 1);
  wrong.set_index(1);  // a free place
  wrong.set_incarnation(0);
  EXPECT_FALSE(Take(wrong));
  wrong.set_index(UINT32_MAX);
  EXPECT_FALSE(Take(wrong));
  wrong = Report(0, 1);
  wrong.set_role(static_cast<v1::Role>(77));
  EXPECT_FALSE(Take(wrong));
  EXPECT_FALSE(Take(v1::HeartbeatRequest()));
  EXPECT_TRUE(collector_.TakeBatches().empty());
}

TEST_F(TraceCollectorTest, AJobWithoutATraceTakesNothing) {
  job_.clear_trace();
  EXPECT_FALSE(Take(Report(0, 1)));
}

// The report counts as taken, so that it is not sent for ever.
TEST_F(TraceCollectorTest, AReportWithAnImpossibleNumberIsLeftOut) {
  using Spoil = void (*)(v1::TraceReport*);
  const Spoil spoils[] = {
      [](v1::TraceReport* r) {
        r->mutable_events(0)->set_kind(v1::TRACE_EVENT_KIND_UNSPECIFIED);
      },
      [](v1::TraceReport* r) {
        r->mutable_events(0)->set_kind(static_cast<v1::TraceEventKind>(16));
      },
      [](v1::TraceReport* r) {
        r->mutable_events(0)->set_kind(static_cast<v1::TraceEventKind>(-9));
      },
      [](v1::TraceReport* r) { r->mutable_events(0)->set_step(4); },
      [](v1::TraceReport* r) { r->mutable_events(0)->set_step(7); },
      [](v1::TraceReport* r) { r->mutable_events(0)->set_step(INT64_MIN); },
      [](v1::TraceReport* r) { r->mutable_events(0)->set_shard(2); },
      [](v1::TraceReport* r) { r->mutable_events(0)->set_block(UINT32_MAX); },
      [](v1::TraceReport* r) { r->mutable_events(0)->set_rank(3); },
      [](v1::TraceReport* r) {
        r->mutable_events(0)->set_begin_micros(INT64_MAX);
      },
      [](v1::TraceReport* r) {
        r->mutable_events(0)->set_begin_micros(INT64_MIN);
      },
      [](v1::TraceReport* r) {
        r->mutable_events(0)->set_duration_micros(UINT64_MAX);
      },
      [](v1::TraceReport* r) { r->set_offset_micros(INT64_MIN); },
      [](v1::TraceReport* r) { r->set_offset_micros(INT64_MAX); },
      [](v1::TraceReport* r) { r->set_uncertainty_micros(-1); },
      [](v1::TraceReport* r) { r->set_uncertainty_micros(INT64_MAX); },
      [](v1::TraceReport* r) { r->set_first(UINT64_MAX); },
      [](v1::TraceReport* r) { r->set_recorded(UINT64_MAX); },
      [](v1::TraceReport* r) { r->set_dropped(UINT64_MAX); },
      [](v1::TraceReport* r) {
        while (r->events_size() <= 4096) *r->add_events() = r->events(0);
      }};
  for (size_t i = 0; i < std::size(spoils); ++i) {
    v1::HeartbeatRequest request = Report(0, 2);
    spoils[i](request.mutable_trace());
    EXPECT_TRUE(Take(request)) << i;
    EXPECT_TRUE(collector_.TakeBatches().empty()) << i;
  }
  EXPECT_TRUE(Take(Report(0, 2)));
  EXPECT_EQ(Blocks(), (std::vector<int>{0, 1}));
}

TEST_F(TraceCollectorTest, TheEventsThatWaitHaveALimit) {
  TraceCollector small(job_, /*max_waiting=*/3);
  EXPECT_TRUE(small.Take(Report(0, 2), membership_));
  EXPECT_TRUE(small.Take(Report(2, 2), membership_));
  EXPECT_TRUE(small.Take(Report(4, 0), membership_));
  EXPECT_TRUE(small.Take(Report(4, 0), membership_));
  const std::vector<TraceBatch> batches = small.TakeBatches();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].events.size(), 2u);
  EXPECT_EQ(batches[1].events.size(), 0u);
  EXPECT_TRUE(small.Take(Report(4, 1), membership_));
  EXPECT_EQ(small.TakeBatches().size(), 1u);
}

}  // namespace
}  // namespace tributary
