// SPDX-License-Identifier: Apache-2.0
#include "worker/session/session.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/http/http_get.h"
#include "tests/unit/worker/session/session_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::SessionTest;
using testing::TestProgram;
using Next = Session::Next;

// The weights of two ranks after `steps` steps, by the formula.
std::vector<std::vector<float>> Trained(int64_t steps) {
  std::vector<std::vector<float>> weights = TestProgram().weights();
  for (int64_t step = 0; step < steps; ++step) {
    for (std::vector<float>& tensor : weights) {
      for (float& weight : tensor) {
        const float base = 0.25f * weight + static_cast<float>(step % 3);
        weight -= 0.5f * (0.5f * (base + (base + 1)));
      }
    }
  }
  return weights;
}

TEST_F(SessionTest, RanksTrainAndEndTogether) {
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

TEST_F(SessionTest, AKnownNumberOfStepsEndsTheLoop) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare(/*total_steps=*/3)).ok());
    program.Train(*session, 100);
    EXPECT_EQ(session->steps(), 3);
    EXPECT_EQ(session->BeginStep(1, {}).value(), Next::kEnd);
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  EXPECT_EQ(final_, Trained(3));
}

// The program's rates, which another group has too, instead of the schedule's.
TEST_F(SessionTest, TheProgramsRatesCount) {
  v1::JobSpec job = Job(1, 2);
  v1::ParameterGroupSpec* group =
      job.mutable_training()->add_parameter_groups();
  group->add_parameters("*.bias");
  group->mutable_optimizer()->mutable_sgd()->set_learning_rate(9);
  Start(job);
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program(8);
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(session->BeginStep(1, {1}).status()));
    ASSERT_EQ(session->BeginStep(1, {0.5, 0.25}).value(), Next::kStep);
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

TEST_F(SessionTest, AStopEndsTheLoop) {
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

// A process that disappears in the middle of a step: another takes its rank and
// goes on within the step.
TEST_F(SessionTest, AReplacedRankGoesOnWithinTheStep) {
  Start(Job(2, 2));
  RunRanks(2, [&](std::unique_ptr<Session> given) {
    TestProgram program;
    ASSERT_TRUE(given->Start(program.Declare()).ok());
    program.Train(*given, 2);
    if (given->rank() == 0) {
      program.Train(*given, 5);
      EXPECT_EQ(program.weights(), Trained(5));
      EXPECT_EQ(given->Finish().value(), Next::kEnd);
      return;
    }
    ASSERT_EQ(program.Push(*given), Next::kStep);
    given.reset();  // without a message, as if it had been killed
    const std::unique_ptr<Session> again = Join(1);
    TestProgram restarted(9);
    ASSERT_TRUE(again->Start(restarted.Declare()).ok());
    EXPECT_GE(again->steps(), 2);
    EXPECT_EQ(restarted.weights(), Trained(again->steps()));
    restarted.Train(*again, 5);
    EXPECT_EQ(restarted.weights(), Trained(5));
    EXPECT_EQ(again->Finish().value(), Next::kEnd);
  });
  EXPECT_EQ(final_, Trained(5));
}

TEST_F(SessionTest, EveryRanksDeclarationIsChecked) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    Session::Declaration declaration = program.Declare();
    if (session->rank() == 1) declaration.parameters[1].name = "other.bias";
    absl::Status status = session->Start(declaration);
    // The other rank may have begun before this one's declaration came.
    if (status.ok() && session->rank() == 0) {
      status = session->BeginStep(1, {}).status();
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

TEST_F(SessionTest, ARankThatEndsBeforeTheOthersFailsTheJob) {
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

TEST_F(SessionTest, CancelEndsAWaitForOtherRanks) {
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

TEST_F(SessionTest, TheReasonOfAFailureReachesTheOtherRanks) {
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

TEST_F(SessionTest, StepsInTheWrongOrderAreRefused) {
  Start(Job(1, 1));
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(session->FinishStep({}).status()));
    ASSERT_EQ(program.Push(*session), Next::kStep);
    EXPECT_TRUE(absl::IsFailedPrecondition(session->BeginStep(1, {}).status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(session->Finish().status()));
    ASSERT_TRUE(session->FinishStep({}).ok());
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
}

TEST_F(SessionTest, WeightsThatTheProgramHasWrittenAreRefused) {
  Start(Job(1, 1));
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    float& bias = program.Declare().weights[1][2];
    for (int step = 0; step < 2; ++step) {
      const float theirs = std::exchange(bias, 5);
      const auto begun = session->BeginStep(1, {});
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

TEST_F(SessionTest, RanksOnTheSameRowsAreNoticed) {
  Start(Job(1, 2));
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    for (int step = 1; step <= 10; ++step) {
      ASSERT_EQ(session->BeginStep(1, {}).value(), Next::kStep);
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

TEST_F(SessionTest, AnEndWithinARoundFailsTheJob) {
  v1::JobSpec job = Job(1, 1);
  job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_local_sgd()
      ->set_period(4);
  Start(job);
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 6);
    const auto next = session->Finish();
    EXPECT_TRUE(absl::IsFailedPrecondition(next.status())) << next.status();
    EXPECT_THAT(next.status().message(),
                HasSubstr("ended after 6 steps, within a round of 4"));
  });
  EXPECT_EQ(coordinator_->control().Snapshot().phase(), v1::JOB_PHASE_FAILED);
}

TEST_F(SessionTest, StepsAndEvaluationsCarryTheProgramsEpochs) {
  Start(Job(1, 1));
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 1);
    ASSERT_TRUE(session->SetData({.rows = 3}).ok());
    program.Train(*session, 4);
    v1::EvaluationPart part;
    part.set_samples(1);
    part.set_values(1);
    EXPECT_TRUE(session->ReportEvaluation(part).ok());
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
  const JobUpdate update =
      coordinator_->control().WaitForUpdate(absl::ZeroDuration());
  ASSERT_EQ(update.steps.size(), 4u);
  EXPECT_EQ(update.steps[2].epoch, 1);
  EXPECT_EQ(update.steps[3].epoch, 2);
  ASSERT_EQ(update.evaluations.size(), 1u);
  EXPECT_EQ(update.evaluations[0].epoch, 2);
}

TEST_F(SessionTest, ARankServesItsMetrics) {
  Start(Job(1, 1));
  const auto session =
      ProgramSession::Create({.coordinator = coordinator_->address(),
                              .metrics_listen = "127.0.0.1:0"});
  ASSERT_TRUE(session.ok()) << session.status();
  TestProgram program;
  ASSERT_TRUE((*session)->Start(program.Declare()).ok());
  program.Train(**session, 3);
  std::string address;
  const v1::JobStatusResponse status = coordinator_->control().Snapshot();
  for (const auto& m : status.members()) {
    if (m.role() == v1::ROLE_WORKER) address = m.metrics_address();
  }
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const std::string page = testing::HttpGet(port, "/metrics").body;
  EXPECT_THAT(page, HasSubstr("tributary_worker_step{rank=\"0\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("tributary_worker_sent_bytes_total"));
  EXPECT_EQ((*session)->Finish().value(), Next::kEnd);
}

TEST_F(SessionTest, AJobWithAModelIsRefused) {
  v1::JobSpec job = Job(1, 1);
  job.clear_program();
  Start(job);
  const auto session =
      ProgramSession::Create({.coordinator = coordinator_->address()});
  EXPECT_TRUE(absl::IsFailedPrecondition(session.status())) << session.status();
  EXPECT_THAT(session.status().message(), HasSubstr("tributary run"));
  coordinator_->control().Fail("the test is over");
}

}  // namespace
}  // namespace tributary
