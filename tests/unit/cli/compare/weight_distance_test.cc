// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/weight_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/files/safetensors.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

class WeightDistanceTest : public testing::TemporaryFolderTest {
 protected:
  std::string Save(const std::string& name, const std::vector<float>& weight,
                   const std::vector<float>& bias, bool bias_first = false) {
    ParameterSpecs specs = {{"0.weight", {static_cast<int64_t>(weight.size())}},
                            {"0.bias", {static_cast<int64_t>(bias.size())}}};
    std::vector<const float*> data = {weight.data(), bias.data()};
    if (bias_first) {
      std::swap(specs[0], specs[1]);
      std::swap(data[0], data[1]);
    }
    TRIBUTARY_EXPECT_OK(WriteSafetensors(Path(name), specs, data));
    return Path(name);
  }
};

TEST_F(WeightDistanceTest, IsRelativeToTheReferenceOverAllTensors) {
  // |(0.3, 0.4, 0)| = 0.5 over |(3, 4, 12)| = 13; the files' order is free.
  const std::string reference = Save("a", {3, 4}, {12});
  const std::string weights = Save("b", {3.25f, 4.5f}, {12}, true);
  EXPECT_NEAR(RelativeWeightDistance(weights, reference).value(),
              std::sqrt(0.25 * 0.25 + 0.5 * 0.5) / 13, 1e-15);
}

TEST_F(WeightDistanceTest, EqualWeightsAreNothingApart) {
  const std::string a = Save("a", {0, 0}, {0});
  EXPECT_EQ(RelativeWeightDistance(a, a).value(), 0);
}

TEST_F(WeightDistanceTest, WhatIsNoNumberIsInfinitelyFar) {
  const std::string a = Save("a", {1, 2}, {3});
  const std::string b =
      Save("b", {1, std::numeric_limits<float>::quiet_NaN()}, {3});
  EXPECT_EQ(RelativeWeightDistance(b, a).value(),
            std::numeric_limits<double>::infinity());
}

TEST_F(WeightDistanceTest, OtherTensorsAreRefused) {
  const std::string a = Save("a", {1, 2}, {3});
  const std::string b = Save("b", {1}, {3});
  EXPECT_THAT(
      RelativeWeightDistance(b, a),
      testing::StatusIs(absl::StatusCode::kInvalidArgument, "0.weight"));
  EXPECT_FALSE(RelativeWeightDistance(a, Path("none")).ok());
}

}  // namespace
}  // namespace tributary
