#include "common/job/goes_on.h"

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

v1::JobSpec LocalSgd(uint32_t period) {
  v1::JobSpec job;
  job.mutable_strategy()
      ->mutable_parameter_server()
      ->mutable_sync()
      ->mutable_local_sgd()
      ->set_period(period);
  return job;
}

TEST(CheckGoesOnTest, AnyStepIsGoodForAJobThatUpdatesEachStep) {
  TRIBUTARY_EXPECT_OK(CheckGoesOn({}, {}, 13, true));
  TRIBUTARY_EXPECT_OK(CheckGoesOn({}, LocalSgd(8), 13, false));
}

TEST(CheckGoesOnTest, LocalSgdGoesOnAfterAWholePeriod) {
  TRIBUTARY_EXPECT_OK(CheckGoesOn(LocalSgd(8), LocalSgd(8), 16, true));
  EXPECT_THAT(CheckGoesOn(LocalSgd(8), LocalSgd(4), 20, true),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "a multiple of its period of 8 steps, the checkpoint is "
                       "of step 20"));
  EXPECT_FALSE(CheckGoesOn(LocalSgd(8), {}, 20, false).ok());
}

TEST(CheckGoesOnTest, OuterAndInnerMomentumAreNotTheSame) {
  EXPECT_THAT(CheckGoesOn(LocalSgd(8), {}, 16, true),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "holds the state of the job's optimizer, which "
                       "local_sgd's outer optimizer cannot go on with"));
  EXPECT_THAT(CheckGoesOn({}, LocalSgd(8), 16, true),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "holds the state of local_sgd's outer optimizer, which "
                       "a job without local_sgd cannot go on with"));
  TRIBUTARY_EXPECT_OK(CheckGoesOn(LocalSgd(8), {}, 16, false));
}

}  // namespace
}  // namespace tributary
