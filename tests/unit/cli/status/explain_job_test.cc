// SPDX-License-Identifier: Apache-2.0
#include "cli/status/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/match.h"
#include "cli/status/why_text.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A job of two servers and two workers on "here". Its step 50 has just ended.
class WhyUnitTest : public ::testing::Test {
 protected:
  WhyUnitTest() {
    v1::JobStatusResponse status;
    status.set_name("digits");
    status.set_phase(v1::JOB_PHASE_RUNNING);
    status.set_step(50);
    status.set_total_steps(5000);
    status.set_loss(0.5);
    status.set_step_wait_seconds(0.1);
    for (const v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER}) {
      for (uint32_t i = 0; i < 2; ++i) {
        v1::MemberStatus& member = *status.add_members();
        member.set_role(role);
        member.set_index(i);
        member.set_host("here");
        member.set_pid(role == v1::ROLE_SERVER ? 10 + i : 20 + i);
        member.set_alive(true);
        member.set_step(50);
        if (role == v1::ROLE_SERVER) {
          member.set_address(i == 0 ? "here:7000" : "here:7001");
          continue;
        }
        v1::StepReport& step = *member.mutable_last_step();
        step.set_step(50);
        step.set_step_seconds(0.025);
        step.set_compute_seconds(0.02);
      }
    }
    facts_.samples.push_back(std::move(status));
  }

  v1::JobStatusResponse& now() { return facts_.samples.back(); }
  void Waits(v1::Cause cause, const std::string& text) {
    now().mutable_wait()->set_cause(cause);
    now().mutable_wait()->set_text(text);
  }
  v1::MemberStatus& server(int i) { return *now().mutable_members(i); }
  v1::MemberStatus& worker(int i) { return *now().mutable_members(2 + i); }
  v1::StepReport& last(int rank) { return *worker(rank).mutable_last_step(); }
  void SetStep(int rank, double seconds, double compute, double wait) {
    last(rank).set_step_seconds(seconds);
    last(rank).set_compute_seconds(compute);
    last(rank).set_wait_seconds(wait);
  }
  WhyAnswer Explain() { return ExplainJob(facts_); }
  std::string Expect(WhyCause cause) {
    const WhyAnswer answer = Explain();
    EXPECT_EQ(CauseWord(answer.cause), CauseWord(cause)) << answer.sentence;
    return answer.sentence;
  }

  WhyFacts facts_;
};

TEST_F(WhyUnitTest, AnAdvancingJobSaysItsPace) {
  EXPECT_EQ(Expect(WhyCause::kNone),
            "advances: step 50 of 5,000, 40 steps a second, last finished 0.1 "
            "s ago");
  EXPECT_FALSE(Explain().wants_more);
}

TEST_F(WhyUnitTest, AStoppedProcessIsNamedAtOnce) {
  facts_.processes[{v1::ROLE_WORKER, 1}] = ProcessState::kStopped;
  worker(1).set_seconds_since_heartbeat(0.3);
  EXPECT_EQ(Expect(WhyCause::kStoppedProcess),
            "does not advance: step 51 waits for worker 1 (here, pid 21), "
            "whose process is stopped (SIGSTOP) and was last heard 0.3 s ago; "
            "`kill -CONT 21` continues it");
  worker(1).set_finished(true);  // it may be stopped: nobody needs it
  Expect(WhyCause::kNone);
}

TEST_F(WhyUnitTest, OthersMayGoOnWithoutAWorker) {
  facts_.processes[{v1::ROLE_WORKER, 1}] = ProcessState::kStopped;
  worker(1).set_seconds_since_heartbeat(2.2);
  now().set_step_wait_seconds(2);
  worker(0).set_step(80);
  EXPECT_TRUE(Explain().wants_more);
  facts_.samples.push_back(now());
  worker(0).set_step(90);
  EXPECT_EQ(Expect(WhyCause::kStoppedProcess),
            "goes on to step 90 without worker 1 (here, pid 21), whose process "
            "is stopped (SIGSTOP) and was last heard 2.2 s ago; `kill -CONT "
            "21` continues it");
  EXPECT_FALSE(Explain().wants_more);
  // So soon after a step the first sample may show an old step of worker 0.
  facts_.samples.front().set_step_wait_seconds(0.4);
  EXPECT_THAT(Expect(WhyCause::kStoppedProcess),
              HasSubstr("does not advance: step 51 waits for worker 1"));
  EXPECT_TRUE(Explain().wants_more);
  // Worker 1's place may be free.
  facts_.samples.front().set_step_wait_seconds(2);
  facts_.processes.clear();
  worker(1).set_alive(false);
  Waits(v1::CAUSE_PLACE, "waiting for a process in the place of worker 1");
  EXPECT_EQ(Expect(WhyCause::kMissingMember),
            "goes on to step 90 while it is waiting for a process in the place "
            "of worker 1");
}

TEST_F(WhyUnitTest, AWaitIsThatOfTheServersWhereTheLateWorkersStepsAreUnknown) {
  facts_.processes[{v1::ROLE_WORKER, 1}] = ProcessState::kStopped;
  worker(0).set_step(78);  // as was worker 1, when it was stopped
  server(0).mutable_wait()->set_text("step 79: rank 1");
  server(0).mutable_wait()->set_step(79);
  server(0).mutable_wait()->add_ranks(1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(Explain().wants_more);
    facts_.samples.push_back(now());
  }
  EXPECT_THAT(Expect(WhyCause::kStoppedProcess),
              HasSubstr("does not advance: step 79 waits for worker 1"));
  EXPECT_FALSE(Explain().wants_more) << "worker 0 waits as well";
}

TEST_F(WhyUnitTest, OfStoppedWorkersTheOneThatIsFurthestBehindIsTheCause) {
  for (const uint32_t rank : {0, 1}) {
    facts_.processes[{v1::ROLE_WORKER, rank}] = ProcessState::kStopped;
  }
  worker(0).set_step(51);
  Waits(v1::CAUSE_CHECKPOINT,
        "a checkpoint that was asked for waits for worker 1");
  EXPECT_EQ(Expect(WhyCause::kStoppedProcess),
            "does not advance: step 51 waits for worker 1 (here, pid 21), "
            "whose process is stopped (SIGSTOP) and was last heard 0.0 s ago; "
            "`kill -CONT 21` continues it; stopped as well: worker 0 (here, "
            "pid 20); a checkpoint that was asked for waits for worker 1");
}

TEST_F(WhyUnitTest, ThePaceIsThatOfTheJobsSamples) {
  for (const int rank : {0, 1}) last(rank).set_samples(10);
  now().set_samples_per_second(200);
  EXPECT_THAT(Expect(WhyCause::kNone), HasSubstr(", 10 steps a second, "));
}

TEST_F(WhyUnitTest, AStoppedProcessComesBeforeOneThatHasEnded) {
  facts_.processes[{v1::ROLE_SERVER, 0}] = ProcessState::kGone;
  EXPECT_THAT(Expect(WhyCause::kEndedProcess), HasSubstr("server 0 (here"));
  facts_.processes[{v1::ROLE_WORKER, 0}] = ProcessState::kStopped;
  EXPECT_THAT(Expect(WhyCause::kStoppedProcess), HasSubstr("worker 0"));
}

TEST_F(WhyUnitTest, AHostWhoseMembersAreAllSilentIsNamed) {
  for (auto* member : {&server(1), &worker(1)}) {
    member->set_host("node-b");
    member->set_seconds_since_heartbeat(2.4);
  }
  Expect(WhyCause::kNone);
  server(1).set_seconds_since_heartbeat(4.2);
  EXPECT_THAT(Expect(WhyCause::kSilentHost),
              AllOf(HasSubstr("server 1 (node-b, pid 11), which was last heard "
                              "4.2 s ago"),
                    HasSubstr("others there are heard")));
  worker(1).set_seconds_since_heartbeat(4.3);
  EXPECT_THAT(Expect(WhyCause::kSilentHost),
              AllOf(HasSubstr(", as was server 1 (node-b, pid 11): the host"),
                    HasSubstr("the host node-b is silent")));
}

TEST_F(WhyUnitTest, ALostPlaceIsWhatTheCoordinatorWaitsFor) {
  worker(1).set_alive(false);
  worker(1).set_seconds_since_heartbeat(14);
  Waits(v1::CAUSE_PLACE,
        "waiting for a process in the place of worker 1 (node-b, pid 21), lost "
        "4.0 s ago, last heard at step 50");
  EXPECT_THAT(Expect(WhyCause::kMissingMember),
              HasSubstr("step 51: waiting for a process in the place of "
                        "worker 1 (node-b, pid 21), lost 4.0 s ago"));
}

TEST_F(WhyUnitTest, BeforeTheFirstStepTheMissingMembersAreNamed) {
  now().set_phase(v1::JOB_PHASE_WAITING);
  Waits(v1::CAUSE_PLACE, "waiting for server 1, the model");
  now().mutable_wait()->set_seconds(31);
  EXPECT_EQ(Expect(WhyCause::kMissingMember),
            "has not begun: it has been waiting for server 1, the model for "
            "31.0 s");
  Waits(v1::CAUSE_PROGRAM,
        "waiting for the job's program to say what it trains");
  EXPECT_THAT(Expect(WhyCause::kNoProgram), HasSubstr("for 31.0 s"));
}

TEST_F(WhyUnitTest, AFullDiskIsNamedWhetherStepsEndOrNot) {
  now().set_checkpoint_error("server 0: f: write: Kein Platz");
  now().set_checkpoint_cause(v1::CAUSE_FULL_DISK);
  now().set_checkpoint_step(40);
  EXPECT_THAT(Expect(WhyCause::kFullDisk),
              AllOf(HasSubstr("advances: step 50"),
                    HasSubstr("because a disk is full: server 0: f"),
                    HasSubstr("the last complete one is of step 40")));
  now().set_checkpoint_error("server 0: f: fsync: Input/output error");
  now().clear_checkpoint_cause();
  EXPECT_THAT(Expect(WhyCause::kFailingDisk), HasSubstr("Input/output error"));
  now().clear_checkpoint_error();
  Waits(v1::CAUSE_FULL_DISK, "what is recorded waits for room: f");
  now().mutable_wait()->set_steps_go_on(true);
  EXPECT_THAT(Expect(WhyCause::kFullDisk), HasSubstr("advances: step 50"));
  Waits(v1::CAUSE_FULL_DISK, "the coordinator cannot save its state: f");
  now().mutable_wait()->set_steps_go_on(false);
  now().mutable_wait()->set_seconds(7);
  EXPECT_THAT(Expect(WhyCause::kFullDisk),
              HasSubstr("does not advance: step 51, for 7.0 s"));
  now().mutable_wait()->set_cause(v1::CAUSE_DISK);
  EXPECT_THAT(Expect(WhyCause::kFailingDisk), HasSubstr("cannot save"));
}

TEST_F(WhyUnitTest, AWorkerThatTakesLongerThanTheOthersIsSlow) {
  SetStep(0, 0.3, 0.02, 0.28);
  SetStep(1, 0.3, 0.29, 0.01);
  EXPECT_THAT(Expect(WhyCause::kSlowWorker),
              HasSubstr("waits for worker 1 (here, pid 21), which computes "
                        "for"));
  EXPECT_TRUE(Explain().wants_more);
  last(1).set_compute_seconds(0.02);
  last(1).set_data_seconds(0.27);
  EXPECT_THAT(Expect(WhyCause::kSlowData), HasSubstr("waits for its data"));
  // Now worker 1 is as slow as the others.
  SetStep(0, 0.3, 0.29, 0.01);
  SetStep(1, 0.3, 0.28, 0.02);
  last(1).clear_data_seconds();
  Expect(WhyCause::kNone);
}

TEST_F(WhyUnitTest, FastStepsAreNeverSlow) {
  SetStep(0, 0.09, 0.02, 0.07);
  SetStep(1, 0.09, 0.08, 0.01);
  Expect(WhyCause::kNone);
}

TEST_F(WhyUnitTest, ALinkIsSlowWhenAWorkerHasComputedAndIsWaitedFor) {
  SetStep(0, 1.0, 0.02, 0.98);
  SetStep(1, 1.0, 0.02, 0.98);
  last(1).set_bytes_sent(1 << 20);
  server(0).mutable_wait()->add_ranks(1);
  EXPECT_THAT(Expect(WhyCause::kSlowLink),
              AllOf(HasSubstr("what worker 1 (here, pid 21) sends"),
                    HasSubstr("1.0 MiB")));
  last(1).set_bytes_sent(40 << 20);
  Expect(WhyCause::kNone);
  last(1).set_bytes_sent(1 << 20);
  // Both are waited for about as often: no single link stands out.
  facts_.samples.push_back(now());
  server(0).mutable_wait()->clear_ranks();
  server(0).mutable_wait()->add_ranks(0);
  EXPECT_THAT(Expect(WhyCause::kSlowLink),
              HasSubstr("then wait for the network"));
}

TEST_F(WhyUnitTest, UpdatesOfTheServersCanBeWhatIsSlow) {
  SetStep(0, 1.0, 0.02, 0.98);
  SetStep(1, 1.0, 0.02, 0.98);
  facts_.samples.push_back(now());
  now().set_step(52);
  server(0).set_optimizer_seconds(1.8);
  EXPECT_THAT(Expect(WhyCause::kSlowServer), HasSubstr("0.9 s"));
}

TEST_F(WhyUnitTest, AStepThatDoesNotEndIsFollowedToTheLateWorker) {
  now().set_step_wait_seconds(0.9);
  Expect(WhyCause::kNone);
  now().set_step_wait_seconds(12);
  server(0).mutable_wait()->add_ranks(1);
  worker(0).mutable_wait()->set_text("step 51, which waits for rank 1");
  worker(0).mutable_wait()->add_ranks(1);
  worker(0).set_step(50);
  EXPECT_THAT(Expect(WhyCause::kSlowWorker),
              AllOf(HasSubstr("step 51 waits for worker 1 (here, pid 21), "
                              "which has worked on step 51 for 12.0 s"),
                    HasSubstr("its last step took 0.0 s")));
  EXPECT_TRUE(Explain().wants_more);
  worker(1).mutable_wait()->set_text("an answer to the push for 4 s");
  worker(1).mutable_wait()->set_server(1);
  EXPECT_THAT(Expect(WhyCause::kSlowLink),
              AllOf(HasSubstr("that is server 1 (here, pid 11)"),
                    HasSubstr("the link between them is slow or cut")));
}

TEST_F(WhyUnitTest, TheChainOfRanksLeadsToTheOneThatWaitsForNobody) {
  now().set_step_wait_seconds(12);
  worker(0).mutable_wait()->set_text("the gradients of rank 1 in step 51");
  worker(0).mutable_wait()->add_ranks(1);
  EXPECT_THAT(Expect(WhyCause::kSlowWorker), HasSubstr("worker 1 (here"));
  // A worker's sentence can be older than its steps.
  worker(1).set_step(51);
  EXPECT_THAT(Expect(WhyCause::kUnknown),
              HasSubstr("worker 0 (here, pid 20) waits for the gradients"));
  worker(0).mutable_wait()->clear_text();
  EXPECT_THAT(Expect(WhyCause::kUnknown), HasSubstr("every process is heard"));
}

TEST_F(WhyUnitTest, ALongStepIsNotLateWhenTheLastOnesTookAsLong) {
  SetStep(0, 10, 9.9, 0.1);
  SetStep(1, 10, 9.9, 0.1);
  now().set_step_wait_seconds(12);
  EXPECT_THAT(Expect(WhyCause::kNone), HasSubstr("one step in 10.0 s"));
  now().set_step_wait_seconds(31);
  Expect(WhyCause::kUnknown);
}

TEST_F(WhyUnitTest, TheFirstStepMayTakeLonger) {
  now().set_step(0);
  for (int rank : {0, 1}) worker(rank).clear_last_step();
  now().set_step_wait_seconds(4.9);
  EXPECT_EQ(Expect(WhyCause::kNone),
            "has begun: step 1 is the first one, for 4.9 s");
  now().set_step_wait_seconds(5);
  Expect(WhyCause::kUnknown);
}

TEST_F(WhyUnitTest, ALossThatNobodyReportsDoesNotDiverge) {
  now().clear_loss();
  EXPECT_THAT(Expect(WhyCause::kNone), HasSubstr("advances: step 50"));
}

TEST_F(WhyUnitTest, ALossThatIsNoNumberDiverges) {
  now().set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Expect(WhyCause::kDiverges), HasSubstr("advances: step 50"));
  now().set_phase(v1::JOB_PHASE_FAILED);
  now().set_message("worker 0 failed: a gradient");
  now().set_cause(v1::CAUSE_DIVERGENCE);
  EXPECT_THAT(Expect(WhyCause::kDiverges), HasSubstr("failed after step 50"));
  now().clear_cause();
  now().set_message("worker 1 failed: out of memory");
  EXPECT_EQ(Expect(WhyCause::kFailed),
            "failed after step 50: worker 1 failed: out of memory");
  now().set_phase(v1::JOB_PHASE_DONE);
  Expect(WhyCause::kDone);
}

TEST(WhyTextTest, PaceAndThousands) {
  EXPECT_EQ(PaceText(0), "no step has ended yet");
  EXPECT_EQ(PaceText(0.0005), "2.0k steps a second");
  EXPECT_EQ(PaceText(0.4), "2.5 steps a second");
  EXPECT_EQ(PaceText(3.2), "one step in 3.2 s");
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(1234567), "1,234,567");
  EXPECT_EQ(WithThousands(-123456), "-123,456");
}

}  // namespace
}  // namespace tributary
