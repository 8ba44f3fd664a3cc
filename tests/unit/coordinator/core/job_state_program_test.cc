// SPDX-License-Identifier: Apache-2.0
// How a job ends when its programs do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/limits.h"
#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

class JobStateProgramTest : public JobStateTest {
 protected:
  // One server and `workers` workers, running without a known end.
  void RunOpen(int workers) {
    Open(1, workers);
    server_ = Join(v1::ROLE_SERVER, "s");
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(Join(v1::ROLE_WORKER, absl::StrCat("w", i)));
    }
    ASSERT_TRUE(Declare(workers_[0], 10, kOpenEnd).ok());
    ASSERT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
  }
  v1::HeartbeatResponse End(int worker, int64_t begun) {
    return Send(worker, {.begun = begun, .program_ended = true});
  }
  void Finish(int worker, int64_t step) {
    Send(worker, {.begun = step, .finished = true, .last_step = step});
  }
};

TEST_F(JobStateProgramTest, TheJobEndsAtTheStepAtWhichAllProgramsHaveEnded) {
  RunOpen(2);
  EXPECT_FALSE(End(0, 7).has_stop_step());
  EXPECT_FALSE(Send(1, {.begun = 6}).has_stop_step());  // it had not heard yet
  EXPECT_EQ(End(1, 7).stop_step(), 7);
  EXPECT_EQ(End(0, 7).stop_step(), 7);
  Finish(0, 7);
  Finish(1, 7);
  EXPECT_TRUE(state_->membership().AllWorkersFinished());
  EXPECT_EQ(state_->steps().final_step(), 7);
  state_->life().MarkDone();
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_DONE);
  EXPECT_FALSE(state_->steps().stop().by_person());  // nobody has stopped it
}

TEST_F(JobStateProgramTest, ARankThatHasBegunALaterStepMovesTheEnd) {
  RunOpen(2);
  EXPECT_FALSE(End(0, 7).has_stop_step());
  EXPECT_EQ(Send(1, {.begun = 8, .paused = true}).stop_step(), 8);
  EXPECT_EQ(End(0, 7).stop_step(), 8);  // and it will fail the job
}

TEST_F(JobStateProgramTest, AKnownNumberOfStepsMayEndEarlyTheSameWay) {
  Run(2);
  End(0, 40);
  EXPECT_EQ(End(1, 40).stop_step(), 40);
  EXPECT_FALSE(state_->steps().stop().by_person());
}

TEST_F(JobStateProgramTest, WhoAsksFirstDecidesWhetherTheJobWasStopped) {
  RunOpen(1);
  state_->steps().RequestStop();
  EXPECT_EQ(End(0, 3).stop_step(), 3);
  EXPECT_TRUE(state_->steps().stop().by_person());
}

TEST_F(JobStateProgramTest, ASuccessorKnowsThatTheProgramHasEnded) {
  RunOpen(2);
  End(0, 5);
  End(1, 5);
  const v1::CoordinatorState kept = state_->Save();
  const JobState::Options options = state_->options();
  state_.emplace(options, kept, now_);
  EXPECT_EQ(state_->steps().final_step(), 5);
  EXPECT_FALSE(state_->steps().stop().by_person());
}

TEST_F(JobStateProgramTest, AHeartbeatOfAnEarlierPlanEndsNothing) {
  RunOpen(1);
  v1::HeartbeatRequest old;
  old.set_role(v1::ROLE_WORKER);
  old.set_incarnation(workers_[0].incarnation());
  old.set_plan_epoch(2);
  old.set_program_ended(true);
  EXPECT_FALSE(state_->Apply(old, 0, 0).has_stop_step());
  EXPECT_EQ(state_->life().phase(), v1::JOB_PHASE_RUNNING);
}

TEST_F(JobStateProgramTest, DifferentSettingsAreNamed) {
  Open(1, 2);
  const auto declare = [this](const v1::RegisterResponse& worker,
                              const std::vector<std::string>& settings) {
    v1::DeclareModelRequest request;
    request.set_rank(worker.index());
    request.set_incarnation(worker.incarnation());
    v1::ParameterSpec* spec = request.add_parameters();
    spec->set_name("w");
    spec->add_shape(3);
    request.set_total_steps(kOpenEnd);
    request.set_steps_per_epoch(1);
    request.mutable_settings()->Add(settings.begin(), settings.end());
    return state_->DeclareModel(request, now_);
  };
  const auto first = Join(v1::ROLE_WORKER, "w0");
  const auto second = Join(v1::ROLE_WORKER, "w1");
  ASSERT_TRUE(declare(first, {"seed=1", "training.clip_norm=1"}).ok());
  EXPECT_TRUE(declare(second, {"seed=1", "training.clip_norm=1"}).ok());
  EXPECT_THAT(
      declare(second, {"seed=1", "training.clip_norm=2"}).message(),
      HasSubstr("worker 1 declares the setting \"training.clip_norm=2\" "
                "instead of \"training.clip_norm=1\", as worker 0 does"));
  EXPECT_THAT(declare(second, {"seed=1"}).message(),
              HasSubstr("declares no setting \"training.clip_norm=1\""));
  EXPECT_THAT(
      declare(second, {"seed=1", "training.clip_norm=1", "name=x"}).message(),
      HasSubstr("declares the setting \"name=x\" too many"));
}

}  // namespace
}  // namespace tributary
