// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/skipped_steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tributary {
namespace {

TEST(SkippedStepsTest, TheFirstTheTenthAndTheHundredthAreTold) {
  SkippedSteps skipped;
  EXPECT_EQ(skipped.Add(7),
            "step 7 changed nothing, because a gradient was not finite; the "
            "servers' logs name the rank and the tensor");
  std::vector<int64_t> told;
  std::string last;
  for (int64_t step = 8; step < 1000; ++step) {
    const std::string sentence = skipped.Add(step);
    if (sentence.empty()) continue;
    told.push_back(step);
    last = sentence;
  }
  EXPECT_EQ(told, (std::vector<int64_t>{16, 106}));
  EXPECT_EQ(last,
            "step 106 changed nothing, because a gradient was not finite (100 "
            "such steps so far); the servers' logs name the rank and the "
            "tensor");
}

}  // namespace
}  // namespace tributary
