// SPDX-License-Identifier: Apache-2.0
#include "common/job/goes_on.h"

#include <string>
#include <vector>

#include "common/job/job_course.h"
#include "common/job/job_options.h"
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
  TRIBUTARY_EXPECT_OK(
      CheckGoesOn({}, {.job = {}, .step = 13, .has_state = true}));
  TRIBUTARY_EXPECT_OK(
      CheckGoesOn({}, {.job = LocalSgd(8), .step = 13, .has_state = false}));
}

TEST(CheckGoesOnTest, LocalSgdGoesOnAfterAWholePeriod) {
  TRIBUTARY_EXPECT_OK(CheckGoesOn(
      LocalSgd(8), {.job = LocalSgd(8), .step = 16, .has_state = true}));
  EXPECT_THAT(CheckGoesOn(LocalSgd(8),
                          {.job = LocalSgd(4), .step = 20, .has_state = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "a multiple of its period of 8 steps, the checkpoint is "
                       "of step 20"));
  EXPECT_FALSE(
      CheckGoesOn(LocalSgd(8), {.job = {}, .step = 20, .has_state = false})
          .ok());
}

TEST(LeavesCheckpointAtEndTest, OfAStepThatIsNotDueOtherwise) {
  v1::JobSpec job;
  EXPECT_FALSE(LeavesCheckpointAtEnd(job, 0, 13)) << "switched off";
  job.mutable_checkpoint()->set_at_end(true);
  EXPECT_TRUE(LeavesCheckpointAtEnd(job, 0, 13));
  EXPECT_FALSE(LeavesCheckpointAtEnd(job, 13, 13)) << "no step was taken";
  job.mutable_checkpoint()->set_every_steps(5);
  EXPECT_TRUE(LeavesCheckpointAtEnd(job, 0, 13));
  EXPECT_FALSE(LeavesCheckpointAtEnd(job, 0, 15));
}

TEST(LeavesCheckpointAtEndTest, OfWholeRoundsOfLocalSgd) {
  v1::JobSpec job = LocalSgd(4);
  job.mutable_checkpoint()->set_at_end(true);
  EXPECT_TRUE(LeavesCheckpointAtEnd(job, 0, 12));
  EXPECT_FALSE(LeavesCheckpointAtEnd(job, 0, 13));
}

v1::JobSpec WithOptimizer(bool adam) {
  v1::JobSpec job;
  v1::OptimizerSpec* optimizer = job.mutable_training()->mutable_optimizer();
  if (adam) {
    optimizer->mutable_adam()->set_beta1(0.9);
    optimizer->mutable_adam()->set_beta2(0.999);
  } else {
    optimizer->mutable_sgd()->set_momentum(0.9);
  }
  return job;
}

void AddGroup(const std::vector<std::string>& patterns, bool frozen,
              v1::JobSpec* job) {
  v1::ParameterGroupSpec* group =
      job->mutable_training()->add_parameter_groups();
  group->set_frozen(frozen);
  for (const std::string& one : patterns) group->add_parameters(one);
}

v1::JobSpec Freezing(bool adam, const std::vector<std::string>& patterns) {
  v1::JobSpec job = WithOptimizer(adam);
  AddGroup(patterns, /*frozen=*/true, &job);
  return job;
}

absl::Status CheckUnfreezing(const v1::JobSpec& now, const v1::JobSpec& before,
                             int64_t step = 13) {
  return CheckGoesOn(
      now, {.job = before,
            .step = step,
            .has_state = true,
            .parameters = {{.name = "0.weight"},
                           {.name = "0.bias"},
                           {.name = "0.running_mean", .running_momentum = 0.1},
                           {.name = "1.weight@1", .whole_name = "1.weight"},
                           {.name = "1.bias"}}});
}

// Adam's bias correction would count the steps of the other parameters.
TEST(CheckGoesOnTest, AdamCannotGoOnWithWhatWasFrozen) {
  const v1::JobSpec both = Freezing(true, {"0.*", "1.bias"});
  const v1::JobSpec one = Freezing(true, {"1.bias"});
  EXPECT_THAT(CheckUnfreezing(one, both),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "0.weight was frozen before the checkpoint"));
  TRIBUTARY_EXPECT_OK(CheckUnfreezing(both, both));
  TRIBUTARY_EXPECT_OK(CheckUnfreezing(both, one));
  TRIBUTARY_EXPECT_OK(CheckUnfreezing(one, both, /*step=*/0));
  TRIBUTARY_EXPECT_OK(
      CheckUnfreezing(Freezing(false, {"1.bias"}), Freezing(false, {"0.*"})));
}

// The workers' optimizer begins anew in any case.
TEST(CheckGoesOnTest, LocalSgdGoesOnWithWhatWasFrozen) {
  const auto local = [](v1::JobSpec job) {
    job.mutable_strategy()
        ->mutable_parameter_server()
        ->mutable_sync()
        ->mutable_local_sgd()
        ->set_period(1);
    return job;
  };
  TRIBUTARY_EXPECT_OK(CheckUnfreezing(local(Freezing(true, {"1.bias"})),
                                      local(Freezing(true, {"0.*"}))));
}

TEST(CheckGoesOnTest, TheFirstGroupThatNamesAParameterFreezesIt) {
  const v1::JobSpec before = Freezing(true, {"0.*"});
  // The same parameters in other words; the running average has no states.
  TRIBUTARY_EXPECT_OK(
      CheckUnfreezing(Freezing(true, {"0.weight", "*0.bias"}), before));
  // The same words, but another group names the bias before.
  v1::JobSpec trains = WithOptimizer(true);
  AddGroup({"*.bias"}, /*frozen=*/false, &trains);
  AddGroup({"0.*"}, /*frozen=*/true, &trains);
  EXPECT_THAT(CheckUnfreezing(trains, before),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "0.bias was frozen before the checkpoint"));
  TRIBUTARY_EXPECT_OK(CheckUnfreezing(Freezing(true, {"0.weight"}), trains));
  EXPECT_THAT(CheckUnfreezing(before, Freezing(true, {"1.weight"})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "1.weight was frozen before the checkpoint"));
}

TEST(CheckGoesOnTest, OuterAndInnerMomentumAreNotTheSame) {
  EXPECT_THAT(
      CheckGoesOn(LocalSgd(8), {.job = {}, .step = 16, .has_state = true}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "holds the state of the job's optimizer, which "
               "local_sgd's outer optimizer cannot go on with"));
  EXPECT_THAT(
      CheckGoesOn({}, {.job = LocalSgd(8), .step = 16, .has_state = true}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "holds the state of local_sgd's outer optimizer, which "
               "a job without local_sgd cannot go on with"));
  TRIBUTARY_EXPECT_OK(
      CheckGoesOn(LocalSgd(8), {.job = {}, .step = 16, .has_state = false}));
}

v1::JobSpec Sgd(double momentum) {
  v1::JobSpec job;
  job.mutable_training()->mutable_optimizer()->mutable_sgd()->set_momentum(
      momentum);
  return job;
}

TEST(CheckGoesOnTest, AnOptimizerWithOtherStatesIsRefused) {
  v1::JobSpec adam, amsgrad, lamb;
  adam.mutable_training()->mutable_optimizer()->mutable_adam();
  amsgrad = adam;
  amsgrad.mutable_training()->mutable_optimizer()->mutable_adam()->set_amsgrad(
      true);
  lamb.mutable_training()->mutable_optimizer()->mutable_lamb();
  TRIBUTARY_EXPECT_OK(CheckGoesOn(Sgd(0.8), {.job = Sgd(0.9), .step = 3}));
  TRIBUTARY_EXPECT_OK(CheckGoesOn(lamb, {.job = adam, .step = 3}));
  for (const auto& [job, before] :
       {std::pair{Sgd(0), Sgd(0.9)}, std::pair{adam, Sgd(0.9)},
        std::pair{amsgrad, adam}}) {
    EXPECT_THAT(CheckGoesOn(job, {.job = before, .step = 3}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         "a job whose optimizer keeps other states"));
  }
}

TEST(CheckGoesOnTest, AJobThatEndsBeforeTheCheckpointIsRefused) {
  v1::JobSpec job;
  job.mutable_training()->set_steps(20);
  TRIBUTARY_EXPECT_OK(CheckGoesOn(job, {.job = {}, .step = 20}));
  EXPECT_THAT(CheckGoesOn(job, {.job = {}, .step = 21}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "the job ends after step 20, the checkpoint is of step "
                       "21"));
}

// 80 rows in batches of 8 are ten steps an epoch.
v1::JobSpec Epochs(int64_t epochs, int workers = 1) {
  v1::JobSpec job;
  job.mutable_cluster()->set_workers(workers);
  job.mutable_data()->set_batch_size(8);
  job.mutable_training()->set_epochs(epochs);
  return job;
}

absl::Status GoesOnAfter(int64_t step, const v1::JobSpec& job) {
  return CheckGoesOn(job, {.job = Epochs(2),
                           .step = step,
                           .course = DataCourse(StretchOf(Epochs(2), 80))});
}

TEST(CheckGoesOnTest, TheEndFollowsFromTheRowsThatAreLeft) {
  TRIBUTARY_EXPECT_OK(GoesOnAfter(20, Epochs(2)));
  TRIBUTARY_EXPECT_OK(GoesOnAfter(20, Epochs(2, 3)));
  TRIBUTARY_EXPECT_OK(GoesOnAfter(21, Epochs(3)));
  EXPECT_THAT(GoesOnAfter(20, Epochs(1, 3)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "the job ends after step 10, the checkpoint is of step "
                       "20: take an earlier checkpoint, or more epochs"));
  EXPECT_FALSE(GoesOnAfter(21, Epochs(2)).ok());
}

TEST(CheckGoesOnTest, BatchesThatDoNotFitTheOpenEpochAreRefused) {
  TRIBUTARY_EXPECT_OK(GoesOnAfter(6, Epochs(2, 3)));  // 48 rows, batches of 24
  EXPECT_THAT(GoesOnAfter(4, Epochs(2, 3)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "32 rows into epoch 1, which is not a multiple of the "
                       "global batch of 24 rows"));
  v1::JobSpec other = Epochs(2);
  other.mutable_data()->mutable_shuffle()->set_seed(3);
  EXPECT_THAT(
      GoesOnAfter(4, other),
      StatusIs(absl::StatusCode::kFailedPrecondition, "keep the order"));
  TRIBUTARY_EXPECT_OK(GoesOnAfter(10, other));
}

}  // namespace
}  // namespace tributary
