// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/session.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/http/http_get.h"
#include "tests/unit/worker/rank/session/session_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::SessionTest;
using testing::TestProgram;
using testing::Trained;
using Next = Session::Next;

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

TEST_F(SessionTest, ALateProgramSeesTheNewestWeightsOnRequestAndAtItsEnd) {
  v1::JobSpec job = Job(2, 2);
  job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_bsp()
      ->set_delay(1);
  Start(job);
  RunRanks(2, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    EXPECT_TRUE(session->is_late());
    program.Train(*session, 5);
    EXPECT_EQ(program.weights(), Trained(4, /*late=*/true));
    ASSERT_TRUE(session->ShowNewest().ok());
    EXPECT_EQ(program.weights(), Trained(5, /*late=*/true));
    ASSERT_TRUE(session->HideNewest().ok());
    EXPECT_EQ(program.weights(), Trained(4, /*late=*/true));
    program.Train(*session, 7);
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
    EXPECT_EQ(program.weights(), Trained(7, /*late=*/true));
  });
  EXPECT_EQ(final_, Trained(7, /*late=*/true));
}

// For example an average of its own, which it saves.
TEST_F(SessionTest, WhatAProgramWritesAfterItsLastStepStays) {
  Start(Job(1, 1));
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    program.Train(*session, 2);
    program.Write(77);
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
    EXPECT_EQ(program.weights()[1][0], 77);
  });
}

TEST_F(SessionTest, StepsInTheWrongOrderAreRefused) {
  Start(Job(1, 1));
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(session->FinishStep({}).status()));
    ASSERT_EQ(program.Push(*session), Next::kStep);
    EXPECT_TRUE(absl::IsFailedPrecondition(session->BeginStep({}).status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(session->Finish().status()));
    ASSERT_TRUE(session->FinishStep({}).ok());
    EXPECT_EQ(session->Finish().value(), Next::kEnd);
  });
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
