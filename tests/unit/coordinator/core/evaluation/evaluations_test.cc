// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::LossSpec CrossEntropy() {
  v1::LossSpec loss;
  loss.mutable_cross_entropy();
  return loss;
}

v1::ReportEvaluationRequest Part(uint32_t rank, int64_t step, uint64_t samples,
                                 uint64_t correct, double loss_sum) {
  v1::ReportEvaluationRequest request;
  request.set_rank(rank);
  request.set_step(step);
  request.set_epoch(1);
  request.mutable_part()->set_samples(samples);
  request.mutable_part()->set_values(samples);
  request.mutable_part()->set_correct(correct);
  request.mutable_part()->set_loss_sum(loss_sum);
  return request;
}

TEST(EvaluationsTest, PartsOfAllRanksMakeTheMetricsOfTheWholeTestSet) {
  Evaluations evaluations(CrossEntropy(), 2);
  ASSERT_TRUE(evaluations.Add(Part(1, 10, 3, 1, 6.0)).ok());
  EXPECT_TRUE(evaluations.Take(10).empty());
  ASSERT_TRUE(evaluations.Add(Part(0, 10, 5, 5, 2.0)).ok());
  const auto records = evaluations.Take(10);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].step, 10);
  EXPECT_EQ(records[0].samples, 8u);
  EXPECT_DOUBLE_EQ(records[0].metrics.at("accuracy"), 0.75);  // 6 / 8
  EXPECT_DOUBLE_EQ(records[0].metrics.at("loss"), 1.0);       // 8 / 8
}

TEST(EvaluationsTest, RecordsNameTheirSetAlsoAfterAnotherCoordinator) {
  v1::JobSpec job;
  EXPECT_EQ(EvaluatedSet(job), "test");
  job.mutable_data()->mutable_validation()->set_fraction(0.1);
  Evaluations evaluations(CrossEntropy(), 1, EvaluatedSet(job));
  ASSERT_TRUE(evaluations.Add(Part(0, 10, 1, 1, 0)).ok());
  EXPECT_EQ(evaluations.Take(10)[0].set, "validation");
  SavedEvaluations saved;
  SaveEvaluation(evaluations.latest(), &saved);
  Evaluations next(CrossEntropy(), 1, "validation");
  next.Restore(EvaluationsOf(saved, "validation")[0]);
  EXPECT_EQ(next.latest().set, "validation");
  EXPECT_EQ(next.latest().step, 10);
}

TEST(EvaluationsTest, RepeatedPartCountsOnce) {
  Evaluations evaluations(CrossEntropy(), 2);
  ASSERT_TRUE(evaluations.Add(Part(0, 10, 4, 4, 0)).ok());
  ASSERT_TRUE(evaluations.Add(Part(0, 10, 4, 4, 0)).ok());
  EXPECT_TRUE(evaluations.Take(10).empty());
  ASSERT_TRUE(evaluations.Add(Part(1, 10, 4, 0, 0)).ok());
  ASSERT_TRUE(evaluations.Add(Part(1, 10, 4, 0, 0)).ok());
  const auto records = evaluations.Take(10);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_DOUBLE_EQ(records[0].metrics.at("accuracy"), 0.5);
}

TEST(EvaluationsTest, RecordsAreHeldUntilTheirStepIsMerged) {
  Evaluations evaluations(CrossEntropy(), 1);
  ASSERT_TRUE(evaluations.Add(Part(0, 10, 1, 1, 0)).ok());
  ASSERT_TRUE(evaluations.Add(Part(0, 20, 1, 1, 0)).ok());
  EXPECT_FALSE(evaluations.HasRecords(9));
  EXPECT_EQ(evaluations.Take(19).size(), 1u);
  EXPECT_EQ(evaluations.Take(20).size(), 1u);
}

TEST(EvaluationsTest, EvaluationOfTheInitialWeightsIsOne) {
  Evaluations evaluations(CrossEntropy(), 1);
  ASSERT_TRUE(evaluations.Add(Part(0, 0, 1, 1, 0)).ok());
  EXPECT_EQ(evaluations.Take(0).size(), 1u);
}

TEST(EvaluationsTest, ContradictionIsRefused) {
  Evaluations evaluations(CrossEntropy(), 1);
  EXPECT_EQ(evaluations.Add(Part(0, 1, 3, 4, 0)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(evaluations.Add(Part(0, -1, 3, 3, 0)).code(),
            absl::StatusCode::kInvalidArgument);
}

// Without a bound between ranks a slow one may be any number of evaluations
// behind.
TEST(EvaluationsTest, TheOldestIsGivenUpWhenTooManyWait) {
  Evaluations evaluations(CrossEntropy(), 2);
  const int64_t limit = Evaluations::kMaxOpen;
  for (int64_t step = 1; step <= limit; ++step) {
    ASSERT_TRUE(evaluations.Add(Part(0, step, 1, 1, 0)).ok());
  }
  EXPECT_THAT(evaluations.TakeNotices(), ElementsAre());
  ASSERT_TRUE(evaluations.Add(Part(0, limit + 1, 1, 1, 0)).ok());
  EXPECT_THAT(evaluations.TakeNotices(),
              ElementsAre("the evaluation after step 1 is given up: rank 1 has "
                          "not reported while 16 later ones were begun"));

  ASSERT_TRUE(evaluations.Add(Part(1, 1, 1, 1, 0)).ok()) << "it comes late";
  EXPECT_TRUE(evaluations.Take(limit + 1).empty());
  ASSERT_TRUE(evaluations.Add(Part(1, 2, 1, 1, 0)).ok());
  const auto records = evaluations.Take(limit + 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].step, 2);
}

TEST(EvaluationsTest, OfManyThatAreGivenUpTheFirstAndTheTenthAreTold) {
  Evaluations evaluations(CrossEntropy(), 2);
  const int64_t limit = Evaluations::kMaxOpen;
  for (int64_t step = 1; step <= limit + 99; ++step) {
    ASSERT_TRUE(evaluations.Add(Part(0, step, 1, 1, 0)).ok());
  }
  EXPECT_THAT(evaluations.TakeNotices(),
              ElementsAre(HasSubstr("after step 1 is given up"),
                          AllOf(HasSubstr("after step 10 is given up"),
                                HasSubstr("; 10 are given up by now"))));
}

TEST(EvaluationsTest, APartOlderThanAllThatWaitIsGivenUpItself) {
  Evaluations evaluations(CrossEntropy(), 2);
  const int64_t limit = Evaluations::kMaxOpen;
  for (int64_t step = 1; step <= limit; ++step) {
    ASSERT_TRUE(evaluations.Add(Part(0, 10 * step, 1, 1, 0)).ok());
  }
  ASSERT_TRUE(evaluations.Add(Part(1, 5, 1, 1, 0)).ok());
  EXPECT_THAT(evaluations.TakeNotices(),
              ElementsAre(HasSubstr("after step 5 is given up: rank 0 ")));
  ASSERT_TRUE(evaluations.Add(Part(1, 10, 1, 1, 0)).ok());
  EXPECT_EQ(evaluations.Take(10).size(), 1u);
}

}  // namespace
}  // namespace tributary
