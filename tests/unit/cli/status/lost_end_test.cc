// SPDX-License-Identifier: Apache-2.0
#include "cli/status/lost_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LostEndTest : public ::testing::Test {
 protected:
  LostEndTest() {
    known_.job.run_directory = "/my runs/a";
    known_.job.command = kTrainCommand;
    known_.life = CoordinatorLife::kGone;
    last_.set_phase(v1::JOB_PHASE_STOPPING);
    last_.set_step(82);
    last_.set_checkpoint_step(80);
  }
  absl::Status Check(bool checkpoint = false) {
    return CheckEndWithoutSummary("digits (runs/digits)", known_, last_,
                                  checkpoint);
  }

  KnownJob known_;
  v1::JobStatusResponse last_;
};

TEST_F(LostEndTest, AKilledCoordinatorIsAnErrorThatSaysHowToGoOn) {
  EXPECT_EQ(Check(/*checkpoint=*/true).message(),
            "digits (runs/digits) has ended after step 82 without a summary, "
            "so it was killed or could not write one; the checkpoint that was "
            "asked for may be missing; `tributary train --resume '/my runs/a'` "
            "goes on from the checkpoint of step 80");
  last_.set_checkpoint_step(0);
  EXPECT_THAT(std::string(Check().message()),
              AllOf(Not(HasSubstr("asked for")), Not(HasSubstr("--resume")),
                    HasSubstr("; `tributary checkpoint list '/my runs/a'` "
                              "shows whether it can go on")));
  last_.set_phase(v1::JOB_PHASE_FAILED);
  last_.set_cause(v1::CAUSE_STOP);
  EXPECT_FALSE(Check().ok()) << "the weights may be missing";
  last_.set_cause(v1::CAUSE_DIVERGENCE);
  last_.set_message("it diverged");
  EXPECT_THAT(std::string(Check().message()),
              HasSubstr("; it had failed: it diverged"));
  EXPECT_FALSE(
      CheckEndWithoutSummary("digits", known_, std::nullopt, false).ok());
}

TEST_F(LostEndTest, ADaemonIsStartedAgainBecauseThatLosesNothing) {
  known_.job.command = kCoordinatorCommand;
  EXPECT_THAT(std::string(Check().message()),
              HasSubstr("could not write one; start the same "
                        "tributary-coordinator command again, with `--run-dir "
                        "'/my runs/a'`: the job goes on where it was"));
  known_.job.command = kRunCommand;
  EXPECT_THAT(ContinueText(known_, /*checkpoint_step=*/80),
              HasSubstr("`tributary checkpoint list "));
}

TEST_F(LostEndTest, ASummaryThatIsNotExpectedHereIsNoError) {
  known_.life = CoordinatorLife::kElsewhere;
  TRIBUTARY_EXPECT_OK(Check());
  known_.life = CoordinatorLife::kGone;
  last_.set_phase(v1::JOB_PHASE_DONE);
  TRIBUTARY_EXPECT_OK(Check());
  last_.set_phase(v1::JOB_PHASE_STOPPING);
  known_.job.run_directory = "";
  TRIBUTARY_EXPECT_OK(Check());
}

}  // namespace
}  // namespace tributary
