// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/strategy.h"
#include "tests/unit/worker/rank/session/session_fixture.h"
#include "worker/rank/session/session.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::SessionTest;
using testing::TestProgram;
using testing::Trained;
using Next = Session::Next;

// Ranks of a program, whichever way their gradients take.
class ExchangeTest : public SessionTest,
                     public ::testing::WithParamInterface<Exchange> {
 protected:
  static v1::JobSpec Job(int servers, int workers) {
    v1::JobSpec job = SessionTest::Job(servers, workers);
    if (GetParam() == Exchange::kParameterServer) return job;
    job.mutable_cluster()->set_servers(0);
    v1::AllReduceSpec* among = job.mutable_strategy()->mutable_all_reduce();
    among->set_sharded(GetParam() == Exchange::kShardedAllReduce);
    among->set_timeout_seconds(30);
    return job;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, ExchangeTest,
                         ::testing::Values(Exchange::kParameterServer,
                                           Exchange::kAllReduce,
                                           Exchange::kShardedAllReduce));

TEST_P(ExchangeTest, RanksTrainAndEndTogether) {
  Start(Job(/*servers=*/2, /*workers=*/2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    EXPECT_EQ(session->world(), 2);
    EXPECT_EQ(session->gradient_moves(), 0u);
    // Rank 0's weights count.
    TestProgram program(session->rank() == 0 ? 1 : 7);
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    EXPECT_EQ(program.weights(), TestProgram().weights());
    program.Train(*session, 4);
    EXPECT_EQ(session->steps(), 4);
    EXPECT_EQ(program.weights(), Trained(4));
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  EXPECT_EQ(coordinator_->control().Snapshot().phase(), v1::JOB_PHASE_DONE);
  EXPECT_EQ(final_step_, 4);
  EXPECT_EQ(final_, Trained(4));
}

TEST_P(ExchangeTest, AKnownNumberOfStepsEndsTheLoop) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare(/*total_steps=*/3)).ok());
    program.Train(*session, 100);
    EXPECT_EQ(session->steps(), 3);
    EXPECT_EQ(session->BeginStep({}).value(), Next::kEnd);
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  EXPECT_EQ(final_, Trained(3));
}

// The program sends a rate for each group; they replace the schedule's rates.
TEST_P(ExchangeTest, TheProgramsRatesCount) {
  v1::JobSpec job = Job(1, 2);
  v1::ParameterGroupSpec* group =
      job.mutable_training()->add_parameter_groups();
  group->add_parameters("*.bias");
  group->mutable_optimizer()->mutable_sgd()->set_learning_rate(9);
  Start(job);
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program(8);
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(
        session->BeginStep({.learning_rates = {1}}).status()));
    ASSERT_EQ(session->BeginStep({.learning_rates = {0.5, 0.25}}).value(),
              Next::kStep);
    for (int p = 1; p >= 0; --p) {
      std::fill_n(session->gradient(p), p == 0 ? 6 : 3, 4.0f);
      session->GradientReady(p);
    }
    ASSERT_EQ(session->FinishStep({}).value(), Next::kStep);
    EXPECT_FALSE(session->skipped());
    EXPECT_EQ(program.weights()[0], std::vector<float>(6, 8 - 0.5f * 4));
    EXPECT_EQ(program.weights()[1], (std::vector<float>{7, 15, -9}));
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
}

TEST_P(ExchangeTest, AStopEndsTheLoop) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 2);
    if (session->rank() == 0) coordinator_->control().RequestStop();
    program.Train(*session, INT64_MAX);
    EXPECT_EQ(program.weights(), Trained(session->steps()));
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  EXPECT_EQ(final_, Trained(final_step_));
}

TEST_P(ExchangeTest, EveryRanksDeclarationIsChecked) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    Session::Declaration declaration = program.Declare();
    if (session->rank() == 1) declaration.parameters[1].name = "other.bias";
    absl::Status status = session->Start(declaration);
    // The other rank may have begun before this one's declaration came.
    if (status.ok() && session->rank() == 0) {
      status = session->BeginStep({}).status();
      if (status.ok()) {
        session->GradientReady(1);
        session->GradientReady(0);
        status = session->FinishStep({}).status();
      }
    }
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("other.bias"));
  });
}

TEST_P(ExchangeTest, ARankThatEndsBeforeTheOthersFailsTheJob) {
  Start(Job(1, 2));
  absl::Notification begun;
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 2);
    if (session->rank() == 0) {
      ASSERT_EQ(program.Push(*session), Next::kStep);  // the third
      begun.Notify();
      const auto next = session->FinishStep({});
      EXPECT_FALSE(next.ok());
      EXPECT_THAT(next.status().message(), HasSubstr("same number of steps"));
      return;
    }
    begun.WaitForNotification();
    const auto end = session->Finish();
    EXPECT_TRUE(absl::IsFailedPrecondition(end.status())) << end.status();
    EXPECT_THAT(end.status().message(), HasSubstr("ended after 2 steps"));
  });
}

TEST_P(ExchangeTest, CancelEndsAWaitForOtherRanks) {
  Start(Job(1, 2));
  absl::Notification pushed, cancelled;
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    if (session->rank() == 1) {  // never takes a step
      cancelled.WaitForNotification();
      session->Fail("the test is over");
      return;
    }
    ASSERT_EQ(program.Push(*session), Next::kStep);
    std::thread other([&] {
      pushed.WaitForNotification();
      session->Cancel("interrupted");
    });
    pushed.Notify();
    const auto next = session->FinishStep({});
    EXPECT_TRUE(absl::IsCancelled(next.status())) << next.status();
    EXPECT_THAT(next.status().message(), HasSubstr("interrupted"));
    other.join();
    cancelled.Notify();
  });
}

TEST_P(ExchangeTest, TheReasonOfAFailureReachesTheOtherRanks) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 1);
    if (session->rank() == 1)
      return session->Fail("ZeroDivisionError in train.py");
    ASSERT_EQ(program.Push(*session), Next::kStep);
    const auto next = session->FinishStep({});
    EXPECT_THAT(next.status().message(), HasSubstr("ZeroDivisionError"));
  });
}

// A killed rank takes the group with it: all go back, here to the beginning,
// because the job has no checkpoints.
TEST_P(ExchangeTest, AReplacedRankEndsWithTheSameWeights) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 2);
    if (session->rank() == 1) {
      ASSERT_EQ(program.Push(*session), Next::kStep);
      session.reset();  // without a message, as if it had been killed
      session = Join(1);
      program = TestProgram(9);
      ASSERT_TRUE(session->Start(program.Declare()).ok());
      EXPECT_EQ(program.weights(), Trained(session->steps()));
    }
    program.Train(*session, 5);
    EXPECT_EQ(program.weights(), Trained(5));
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  EXPECT_EQ(final_, Trained(5));
}

// Ranks whose gradients are final in another order, and one without samples,
// whose memory holds NaNs in place of gradients.
TEST_P(ExchangeTest, EachRankCountsByItsSamples) {
  Start(Job(1, 3));
  RunRanks(3, [&](std::unique_ptr<Session> session) {
    const int rank = session->rank();
    TestProgram program(8);
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    const uint64_t samples = rank == 2 ? 0 : 1 + 2 * rank;
    ASSERT_EQ(session->BeginStep({.samples = samples}).value(), Next::kStep);
    for (const int p : {rank % 2, 1 - rank % 2}) {
      std::fill_n(session->gradient(p), p == 0 ? 6 : 3,
                  rank == 2 ? NAN : 4.0f * rank);
      session->GradientReady(p);
    }
    ASSERT_EQ(session->FinishStep({}).value(), Next::kStep);
    EXPECT_EQ(program.weights()[0], std::vector<float>(6, 8 - 0.5f * 3));
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
}

// The mean of equal values is exactly this value, which a sum of three in
// float32 is not.
TEST_P(ExchangeTest, RunningAveragesTakeTheRanksMeanOrRank0sValue) {
  for (const bool of_rank_0 : {false, true}) {
    v1::JobSpec job = Job(1, 3);
    if (of_rank_0) job.mutable_program()->set_buffers(v1::BUFFERS_RANK0);
    Start(job);
    RunRanks(3, [&](std::unique_ptr<Session> session) {
      const int rank = session->rank();
      std::vector<float> weight(1), averages = {0.1f, 8, 1e30f, 0};
      ASSERT_TRUE(session
                      ->Start({.parameters = {{"weight", {1}},
                                              {.name = "averages",
                                               .shape = {4},
                                               .running_momentum = 1}},
                               .weights = {weight.data(), averages.data()}})
                      .ok());
      for (int step = 1; step <= 20; ++step) {
        const int own = (rank + step) % 3;  // samples, also 0
        ASSERT_EQ(
            session->BeginStep({.samples = static_cast<uint64_t>(own)}).value(),
            Next::kStep);
        *session->gradient(0) = 1;
        averages[1] = static_cast<float>(4 * step + rank);
        averages[2] = 1e-7f / static_cast<float>(step);
        averages[3] += 1;
        std::copy(averages.begin(), averages.end(), session->gradient(1));
        session->GradientReady(1);
        session->GradientReady(0);
        const float before = averages[3] - 1;
        ASSERT_EQ(session->FinishStep({}).value(), Next::kStep);
        EXPECT_EQ(averages[0], 0.1f) << step;
        float sum = 0;  // of the ranks, by samples, of which there are 3
        for (int r = 0; r < 3; ++r)
          sum += static_cast<float>(r * ((r + step) % 3));
        const bool counts = step % 3 > 0;  // rank 0
        if (!of_rank_0) {
          EXPECT_FLOAT_EQ(averages[1],
                          4.0f * static_cast<float>(step) + sum / 3);
          EXPECT_EQ(averages[2], 1e-7f / static_cast<float>(step)) << step;
          EXPECT_EQ(averages[3], before + 1);
        } else if (counts) {
          EXPECT_EQ(averages[1], 4 * step);
          EXPECT_EQ(averages[2], 1e-7f / static_cast<float>(step));
          EXPECT_EQ(averages[3], before + 1);
        } else {
          EXPECT_EQ(averages[1], 4 * (step - 1));
          EXPECT_EQ(averages[3], before);
        }
      }
      EXPECT_EQ(session->Finish().value(), Next::kEnd);
    });
    Stop();
  }
}

TEST_P(ExchangeTest, RanksWithOtherRatesFailTheJob) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    ASSERT_EQ(
        session->BeginStep({.learning_rates = {0.5 + session->rank()}}).value(),
        Next::kStep);
    for (int p = 1; p >= 0; --p) session->GradientReady(p);
    const auto next = session->FinishStep({});
    EXPECT_FALSE(next.ok());
    EXPECT_THAT(next.status().message(), HasSubstr("rank"));
  });
  EXPECT_THAT(coordinator_->control().Snapshot().message(),
              HasSubstr("learning rate"));
}

TEST_P(ExchangeTest, AStepThatIsNotFiniteIsSkippedAndToldSo) {
  v1::JobSpec job = Job(1, 2);
  job.mutable_training()->set_nonfinite(v1::NON_FINITE_SKIP);
  Start(job);
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program(8);
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    for (const bool finite : {false, true}) {
      ASSERT_EQ(session->BeginStep({}).value(), Next::kStep);
      for (int p = 1; p >= 0; --p) {
        std::fill_n(session->gradient(p), p == 0 ? 6 : 3, 4.0f);
        if (!finite && session->rank() == 1) session->gradient(p)[1] = NAN;
        session->GradientReady(p);
      }
      ASSERT_EQ(session->FinishStep({}).value(), Next::kStep);
      EXPECT_EQ(session->skipped(), !finite);
      EXPECT_EQ(program.weights()[0],
                std::vector<float>(6, finite ? 6.0f : 8.0f));
    }
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  const JobUpdate update =
      coordinator_->control().WaitForUpdate(absl::ZeroDuration());
  ASSERT_EQ(update.steps.size(), 2u);
  EXPECT_TRUE(update.steps[0].skipped);
  EXPECT_FALSE(update.steps[1].skipped);
}

TEST_P(ExchangeTest, WeightsThatTheProgramHasWrittenAreRefused) {
  Start(Job(1, 1));
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    float& bias = program.Declare().weights[1][2];
    for (int step = 0; step < 2; ++step) {
      const float theirs = std::exchange(bias, 5);
      const auto begun = session->BeginStep({});
      EXPECT_TRUE(absl::IsInvalidArgument(begun.status())) << begun.status();
      EXPECT_THAT(begun.status().message(),
                  HasSubstr(absl::StrCat(
                      "the weights of \"0.bias\" after step ", step)));
      bias = theirs;  // put back, so the step begins
      program.Train(*session, step + 1);
    }
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
}

TEST_P(ExchangeTest, RanksOnTheSameRowsAreNoticed) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    for (int step = 1; step <= 10; ++step) {
      ASSERT_EQ(session->BeginStep({}).value(), Next::kStep);
      for (int p = 1; p >= 0; --p) {
        std::fill_n(session->gradient(p), p == 0 ? 6 : 3, 0.5f * step);
        session->GradientReady(p);
      }
      ASSERT_EQ(session->FinishStep({}).value(), Next::kStep);
    }
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  EXPECT_THAT(
      coordinator_->control().WaitForUpdate(absl::ZeroDuration()).notices,
      ::testing::Contains(HasSubstr("ranks 0, 1 computed equal gradients")));
}

}  // namespace
}  // namespace tributary
