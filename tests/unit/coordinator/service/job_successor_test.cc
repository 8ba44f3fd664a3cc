// SPDX-License-Identifier: Apache-2.0
// A coordinator that continues the job of an earlier one.
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/service/coordinator.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/service/job_control_fixture.h"

namespace tributary {
namespace {

TEST(JobControlTest, MembersGetTheKeyOfTheCheckpointsAndASuccessorMustHaveIt) {
  ManualClock clock;
  v1::CoordinatorState kept;
  JobControl::Options options{.state = Options(), .clock = &clock};
  options.state.job.mutable_cluster()->set_workers(1);
  options.state.job_key = "of tickets";
  options.state.checkpoint_key = "the key";
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  {
    JobControl first(options);
    for (const v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER}) {
      EXPECT_EQ(Join(first, role, "member").checkpoint_key(), "the key");
    }
    EXPECT_EQ(Join(first, v1::ROLE_OBSERVER, "x").checkpoint_key(), "");
  }
  EXPECT_FALSE(absl::StrContains(kept.SerializeAsString(), "the key"));
  const auto succeed = [&](const std::string& key) {
    Coordinator::Options successor;
    successor.job = options.state.job;
    successor.checkpoint_key = key;
    successor.predecessor.state = &kept;
    return Coordinator::Start(std::move(successor)).status();
  };
  for (const char* wrong : {"", "another key"}) {
    EXPECT_THAT(succeed(wrong),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  "--checkpoint-key"))
        << wrong;
  }
  EXPECT_TRUE(succeed("the key").ok());
}

// A member reports unrecorded steps again, unless they are gone.
TEST(JobControlTest, ASuccessorSavesAfterTheStepThatEverybodyHasFinished) {
  ManualClock clock;
  JobControl::Options options;
  options.state = Options();
  options.state.job.mutable_cluster()->set_workers(1);
  options.clock = &clock;
  v1::CoordinatorState kept;
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  v1::RegisterResponse server;
  {
    JobControl first(options);
    server = Join(first, v1::ROLE_SERVER, "server");
    const auto worker = Join(first, v1::ROLE_WORKER, "worker");
    Declare(first, worker);
    v1::HeartbeatRequest last = Beat(v1::ROLE_WORKER, worker);
    last.set_start_step(kSteps);
    last.set_begun_step(kSteps);
    last.set_finished(true);
    ASSERT_TRUE(first.calls().Heartbeat(last).ok());
  }
  options.predecessor.state = &kept;
  JobControl successor(options);
  v1::Plan plan;
  int64_t step = 0;
  EXPECT_FALSE(successor.output().ReadyToSave(&plan, &step));
  for (int i = 0; i < 4; ++i) {  // its lease runs out
    clock.AdvanceMicros(3'000'000);
    ASSERT_TRUE(
        successor.calls().Heartbeat(Beat(v1::ROLE_SERVER, server)).ok());
    successor.Tick(absl::ZeroDuration());
  }
  ASSERT_TRUE(successor.output().ReadyToSave(&plan, &step));
  EXPECT_EQ(step, kSteps);
}

TEST(JobControlTest, EventsAreShownAndASuccessorGoesOnWithThem) {
  ManualClock clock;
  v1::CoordinatorState kept;
  JobControl::Options options{.state = Options(), .clock = &clock};
  options.state.job.mutable_cluster()->set_workers(1);
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  std::vector<HistoryEvent> recorded;
  {
    JobControl first(options);
    Join(first, v1::ROLE_SERVER, "server");
    const auto worker = Join(first, v1::ROLE_WORKER, "worker");
    Declare(first, worker);
    first.MemberLost(v1::ROLE_WORKER, 0, 0, "killed by signal 9");
    Join(first, v1::ROLE_WORKER, "another worker");
    recorded = first.WaitForUpdate(absl::ZeroDuration()).events;
    const auto shown = first.Snapshot().events();
    ASSERT_EQ(shown.size(), 3);
    EXPECT_EQ(shown[0].text(), "the job is running");
    EXPECT_EQ(shown[1].text(),
              "worker 0 (, pid 0) was lost, last heard at step 0: killed by "
              "signal 9");
    EXPECT_EQ(shown[2].text(), "worker 0 (, pid 0) takes its place");
    EXPECT_GT(shown[2].micros(), int64_t{1'700'000'000'000'000});
    ASSERT_EQ(recorded.size(), 3u);
    EXPECT_TRUE(first.WaitForUpdate(absl::ZeroDuration()).events.empty());
  }
  options.predecessor.state = &kept;
  options.predecessor.recorded.step = 7;
  options.predecessor.events = recorded;
  JobControl successor(options);
  const auto shown = successor.Snapshot().events();
  ASSERT_EQ(shown.size(), 4);
  EXPECT_EQ(
      shown[1].text(),
      "worker 0 (, pid 0) was lost, last heard at step 0: killed by signal 9");
  EXPECT_EQ(shown[3].text(),
            "another coordinator continues the job after step 7");
  const auto news = successor.WaitForUpdate(absl::ZeroDuration()).events;
  ASSERT_EQ(news.size(), 1u);  // the others are recorded already
  EXPECT_EQ(news[0].text, shown[3].text());
}

TEST(JobControlTest, ASuccessorCountsTheTimeSinceACheckpointFromItsStart) {
  ManualClock clock;
  clock.AdvanceMicros(40'000'000'000);  // of a machine that runs for long
  v1::CoordinatorState kept;
  JobControl::Options options{.state = Options(), .clock = &clock};
  options.state.job.mutable_cluster()->set_workers(1);
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  {
    JobControl first(options);
    Join(first, v1::ROLE_SERVER, "server");
    Declare(first, Join(first, v1::ROLE_WORKER, "worker"));
    ASSERT_EQ(first.Snapshot().phase(), v1::JOB_PHASE_RUNNING);
  }
  options.predecessor.state = &kept;
  JobControl successor(options);
  clock.AdvanceMicros(2'000'000);
  EXPECT_EQ(successor.Snapshot().seconds_since_checkpoint(), 2);
}

// The power fails while the job is stopping: all members go back, and stop
// where the records end, not where the members pause first.
TEST(JobControlTest, ASuccessorStopsNotBeforeTheLastRecordedStep) {
  ManualClock clock;
  v1::CoordinatorState kept;
  JobControl::Options options{.state = Options(), .clock = &clock};
  options.state.job.mutable_cluster()->set_workers(1);
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  {
    JobControl first(options);
    Join(first, v1::ROLE_SERVER, "server");
    Declare(first, Join(first, v1::ROLE_WORKER, "worker"));
    first.RequestStop();
  }
  options.predecessor.state = &kept;
  options.predecessor.recorded.step = 7;
  JobControl successor(options);
  for (int i = 0; i < 4; ++i) {  // nobody is heard
    clock.AdvanceMicros(3'000'000);
    successor.Tick(absl::ZeroDuration());
  }
  Join(successor, v1::ROLE_SERVER, "another server");
  const auto worker = Join(successor, v1::ROLE_WORKER, "another worker");
  ASSERT_EQ(successor.calls().GetPlan({})->epoch(), 2u);
  v1::HeartbeatRequest paused = Beat(v1::ROLE_WORKER, worker);
  paused.set_plan_epoch(2);
  paused.set_paused(true);
  const auto answer = successor.calls().Heartbeat(paused);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->phase(), v1::JOB_PHASE_STOPPING);
  EXPECT_EQ(answer->stop_step(), 7);
}

// A server has written while there was no coordinator: it reports the file
// until the checkpoint is decided.
TEST(JobControlTest, ASuccessorTakesACheckpointFromTheFirstHeartbeat) {
  ManualClock clock;
  v1::CoordinatorState kept;
  JobControl::Options options{.state = Options(), .clock = &clock};
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  v1::HeartbeatRequest request;
  {
    JobControl first(options);
    const auto server = Join(first, v1::ROLE_SERVER, "server");
    for (int i = 0; i < kWorkers; ++i) {
      const auto worker =
          Join(first, v1::ROLE_WORKER, absl::StrCat("worker-", i));
      if (i == 0) Declare(first, worker);
    }
    request = Beat(v1::ROLE_SERVER, server);
  }
  v1::CheckpointReport* written = request.add_checkpoints();
  written->set_step(5);
  written->set_plan_epoch(1);
  written->mutable_file()->set_name("shard-0-of-1");
  options.predecessor.state = &kept;
  JobControl successor(options);
  request.set_term(successor.term());
  auto answer = successor.calls().Heartbeat(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->checkpoints_taken(), 0);
  const std::optional<PendingManifest> pending =
      successor.output().NextManifest();
  ASSERT_TRUE(pending.has_value());
  EXPECT_TRUE(
      successor.output().ManifestWritten(*pending, "step-5", absl::OkStatus()));
  answer = successor.calls().Heartbeat(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->checkpoints_taken(), 1);
}

// A rank that has received every other rank's value does not send its own
// again, so a group that was half connected could never be completed.
TEST(JobControlTest, ASuccessorFormsAnewTheGroupsThatWereBeingConnected) {
  ManualClock clock;
  v1::CoordinatorState kept;
  JobControl::Options options{.state = Options(), .clock = &clock};
  options.state.job.mutable_cluster()->set_servers(0);
  options.state.job.mutable_strategy()->mutable_all_reduce();
  options.save = [&kept](const v1::CoordinatorState& state) {
    kept = state;
    return absl::OkStatus();
  };
  std::vector<v1::RegisterResponse> workers;
  {
    JobControl first(options);
    for (int i = 0; i < kWorkers; ++i) {
      workers.push_back(
          Join(first, v1::ROLE_WORKER, absl::StrCat("worker-", i)));
    }
    Declare(first, workers[0]);
    ASSERT_EQ(first.calls().GetPlan({})->epoch(), 1u);
  }
  options.predecessor.state = &kept;
  JobControl successor(options);
  v1::ExchangeRequest late;
  late.set_rank(0);
  late.set_incarnation(workers[0].incarnation());
  late.set_plan_epoch(1);
  late.set_group("data");
  for (int i = 0; i < kWorkers; ++i) late.add_ranks(i);
  EXPECT_TRUE(absl::IsAborted(successor.calls().Exchange(late).status()));
  clock.AdvanceMicros(1'000'000);
  for (const v1::RegisterResponse& worker : workers) {
    ASSERT_TRUE(
        successor.calls().Heartbeat(Beat(v1::ROLE_WORKER, worker)).ok());
  }
  successor.Tick(absl::ZeroDuration());
  EXPECT_EQ(successor.calls().GetPlan({})->epoch(), 2u);
  late.set_plan_epoch(2);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(successor.calls().Exchange(late).status()))
      << "it waits for the other ranks";
}

}  // namespace
}  // namespace tributary
