// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/contribution_tags.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/status_matchers.h"

namespace tributary::testing {
namespace {

// Three workers, two steps: weights are (row of step 0, row of step 1,
// counter).
class ContributionTagsTest : public ::testing::Test {
 protected:
  // Applies a contribution as plain SGD with rate 1 does.
  void Apply(uint32_t rank, int64_t step, float share = 1) {
    std::vector<float> gradient(tags_.size());
    tags_.Fill(rank, step, absl::MakeSpan(gradient));
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights_[i] -= share * gradient[i];
    }
  }

  const ContributionTags tags_{3, 2};
  std::vector<float> weights_ = std::vector<float>(3, 0.0f);
};

TEST_F(ContributionTagsTest, WeightsSayHowManyStepsOfWhomAreInThem) {
  Apply(0, 0);
  Apply(2, 0);
  Apply(0, 1);
  EXPECT_EQ(weights_, (std::vector<float>{1 + 64, 1, 3}));
  EXPECT_EQ(*tags_.StepsIn(weights_), (std::vector<int64_t>{2, 0, 1}));
}

TEST_F(ContributionTagsTest, WhatCountsTwiceIsNamed) {
  Apply(1, 0);
  Apply(1, 0);
  EXPECT_THAT(
      tags_.StepsIn(weights_),
      StatusIs(absl::StatusCode::kInternal, "rank 1 to step 1 counts 2 times"));
}

TEST_F(ContributionTagsTest, WhatIsLostIsNamed) {
  Apply(1, 1);
  EXPECT_THAT(tags_.StepsIn(weights_),
              StatusIs(absl::StatusCode::kInternal,
                       "rank 1 to step 1 is missing, that to step 2"));
}

TEST_F(ContributionTagsTest, ACounterThatDisagreesIsAnError) {
  Apply(0, 0);
  weights_[2] = 2;
  EXPECT_THAT(tags_.StepsIn(weights_),
              StatusIs(absl::StatusCode::kInternal, "counter"));
}

TEST_F(ContributionTagsTest, AMeanIsOfEnoughRanksEachOnce) {
  Apply(0, 0, 0.5f);
  Apply(2, 0, 0.5f);
  TRIBUTARY_EXPECT_OK(tags_.CheckMeans(weights_, 1, 2));
  EXPECT_THAT(tags_.CheckMeans(weights_, 1, 3),
              StatusIs(absl::StatusCode::kInternal, "mean of no 3 ranks"));
  EXPECT_THAT(tags_.CheckMeans(weights_, 0, 2),
              StatusIs(absl::StatusCode::kInternal, "not empty"));
  Apply(2, 0, 0.5f);
  EXPECT_THAT(tags_.CheckMeans(weights_, 1, 2),
              StatusIs(absl::StatusCode::kInternal, "row 0"));
}

}  // namespace
}  // namespace tributary::testing
