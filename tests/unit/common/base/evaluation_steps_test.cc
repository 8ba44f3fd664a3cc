// SPDX-License-Identifier: Apache-2.0
#include "common/base/evaluation_steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tributary {
namespace {

std::vector<int64_t> Upto(const EvaluationSteps& steps, int64_t last) {
  std::vector<int64_t> all;
  for (int64_t at = steps.After(0); at <= last; at = steps.After(at)) {
    all.push_back(at);
  }
  return all;
}

DataCourse OfEpochs(int64_t steps) {
  return DataCourse(DataStretch{.rows = steps});
}

TEST(EvaluationStepsTest, EndsOfEpochsAndEverySoManySteps) {
  const DataCourse tens = OfEpochs(10);
  EXPECT_EQ(Upto({.course = tens}, 30), (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(Upto({.course = tens, .every = 4}, 24),
            (std::vector<int64_t>{4, 8, 10, 12, 16, 20, 24}));
}

TEST(EvaluationStepsTest, IncludesWhatAfterGives) {
  const DataCourse sevens = OfEpochs(7);
  const EvaluationSteps steps{.course = sevens, .every = 3};
  const std::vector<int64_t> all = Upto(steps, 100);
  size_t next = 0;
  for (int64_t step = 0; step <= 100; ++step) {
    const bool included = next < all.size() && all[next] == step;
    EXPECT_EQ(steps.Includes(step), included) << step;
    if (included) ++next;
  }
}

}  // namespace
}  // namespace tributary
