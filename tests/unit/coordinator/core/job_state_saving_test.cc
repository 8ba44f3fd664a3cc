// SPDX-License-Identifier: Apache-2.0
// Every change of a job is noticed, although the large parts of its state are
// compared by their revision alone.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

class JobStateSavingTest : public JobStateTest {
 protected:
  using Mark = std::pair<std::string, uint64_t>;
  Mark Now() const {
    return {state_->SaveSmall().SerializeAsString(), state_->large_revision()};
  }
  // A change of the state since the last call must have changed its mark.
  void Check(const char* what) {
    const std::string state = state_->Save().SerializeAsString();
    if (state != saved_) {
      EXPECT_NE(Now(), mark_) << what;
      ++changes_;
    }
    saved_ = state;
    mark_ = Now();
  }

  std::string saved_;
  Mark mark_;
  int changes_ = 0;
};

TEST_F(JobStateSavingTest, EveryChangeOfAJobWithServersIsNoticed) {
  Open(1, 2);
  Check("opened");
  server_ = Join(v1::ROLE_SERVER, "s");
  Check("a server joins");
  for (int i = 0; i < 2; ++i) {
    workers_.push_back(Join(v1::ROLE_WORKER, absl::StrCat("w", i)));
    Check("a worker joins");
  }
  ASSERT_TRUE(Declare(workers_[1]).ok());
  Check("the plan is published");
  v1::DeclareModelRequest inputs;
  inputs.set_rank(0);
  inputs.set_incarnation(workers_[0].incarnation());
  *inputs.mutable_parameters() = state_->plans().declaration().parameters();
  inputs.set_total_steps(100);
  inputs.set_steps_per_epoch(10);
  inputs.set_no_preprocessing("too large");
  ASSERT_TRUE(state_->DeclareModel(inputs, now_).ok());
  Check("rank 0 declares its inputs");
  state_->plans().SetRestorePoint(20, "/checkpoints/step-20");
  Check("a checkpoint is complete");
  LetTheLeaseOfWorker0RunOut();
  Check("a worker is lost");
  workers_[0] = Join(v1::ROLE_WORKER, "another");
  Check("it is replaced");
  state_->losses().MemberLost(v1::ROLE_SERVER, 0, /*pid=*/7, "killed", now_);
  Check("a server is lost");
  server_ = Join(v1::ROLE_SERVER, "t");
  Check("a new plan is published");
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  Check("a worker finishes");
  state_->GoBack(10, "/checkpoints/step-10", "damaged");
  Check("all go back");
  state_->steps().RequestStop();
  Check("a stop is requested");
  for (int w : {0, 1}) Send(w, {.begun = 30, .paused = true});
  Check("the step is settled");
  state_->life().MarkDone();
  Check("it is done");
  EXPECT_EQ(changes_, 16) << "each of these is a change";
}

TEST_F(JobStateSavingTest, EveryChangeOfAGroupIsNoticed) {
  RunGroup(2);
  Check("it runs");
  Send(0, {.begun = 100, .finished = true, .last_step = 100});
  Check("a rank finishes");
  Send(1, {.begun = 5, .broken_group = "rank 0 is gone"});
  Check("the group breaks");
  now_ += kSecond;
  for (int w : {0, 1}) Send(w, {});
  state_->Tick(now_);
  Check("it is formed anew");
  state_->life().Fail("a person wants it");
  Check("it fails");
  EXPECT_EQ(changes_, 5);
}

TEST_F(JobStateSavingTest, HeartbeatsOfAJobThatRunsChangeNothing) {
  Run(2);
  Check("it runs");
  for (int64_t step = 1; step <= 10; ++step) {
    for (int w : {0, 1}) Send(w, {.begun = step});
    BeatServer();
    state_->Tick(now_ += kSecond / 10);
    const Mark before = mark_;
    Check("a beat");
    EXPECT_EQ(mark_, before);
  }
  EXPECT_EQ(changes_, 1);
}

}  // namespace
}  // namespace tributary
