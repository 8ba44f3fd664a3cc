// SPDX-License-Identifier: Apache-2.0
#include "common/cost/measurement.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/layers/simple_model.h"

namespace tributary {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

ComputeMeasurement Measured() {
  ComputeMeasurement measured;
  measured.sample_shape = {28, 28};
  measured.passes = {{16, 0.5, 1.0}, {64, 1.25, 3.4}};
  measured.update_seconds = 0.125;
  measured.memory_bandwidth = 4e9;
  measured.process_bytes = 70'000'000;
  measured.peak_bytes = 90'000'000;
  return measured;
}

TEST(MeasurementTest, ComesBackFromItsJson) {
  const std::string json = ToJson(Measured());
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const absl::StatusOr<ComputeMeasurement> back = ComputeMeasurementOf(json);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), json);
  EXPECT_EQ(back->passes[1].rows, 64);
  const absl::StatusOr<LinkMeasurement> link =
      LinkMeasurementOf(ToJson(LinkMeasurement{1.25e8, 2e-4}));
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(link->bandwidth, 1.25e8);
  EXPECT_EQ(link->latency, 2e-4);
}

TEST(MeasurementTest, OtherTextIsRefused) {
  for (const char* json : {"", "error: no such file", "[]", "{}", "null",
                           R"({"sample_shape":[-1],"passes":[]})",
                           R"({"sample_shape":[1],"passes":[7]})"}) {
    EXPECT_THAT(ComputeMeasurementOf(json).status().message(),
                HasSubstr("a measurement wants"))
        << json;
  }
  EXPECT_THAT(
      LinkMeasurementOf(R"({"bandwidth":0,"latency":0})").status().message(),
      HasSubstr("above 0"));
  EXPECT_THAT(
      LinkMeasurementOf(R"({"bandwidth":-3,"latency":0})").status().message(),
      HasSubstr("from 0 to"));
}

// 400,000 lists within each other; copying them takes more stack than there is.
TEST(MeasurementTest, ADeepTextIsRefused) {
  const std::string deep =
      absl::StrCat(R"({"sample_shape": [1], "passes": )",
                   std::string(400'000, '['), std::string(400'000, ']'), "}");
  EXPECT_THAT(ComputeMeasurementOf(deep).status().message(),
              HasSubstr("wants the number rows"));
  EXPECT_FALSE(ComputeMeasurementOf(std::string(2 << 20, '[')).ok());
}

TEST(MeasurementTest, AnExtentBeyondAllNumbersIsRefused) {
  EXPECT_THAT(
      ComputeMeasurementOf(R"({"sample_shape": [18446744073709551615]})")
          .status()
          .message(),
      HasSubstr("in sample_shape"));
}

// Forward: 48 rows more take 0.75 s more, so 1/64 s a row and 0.25 s before the
// first. Backward: 2.4 s more, 0.05 s a row and 0.2 s. The simple model of two
// layers has 2 and 4 FLOPs.
TEST(MeasurementTest, TwoBatchSizesTellWhatAPassAloneTakes) {
  const ModelCosts model = SimpleModel({10, 10});
  const ComputeSpeed speed = SpeedOf(Measured(), model);
  EXPECT_DOUBLE_EQ(speed.forward_flops, 2 * 64);
  EXPECT_NEAR(speed.backward_flops, 4 / 0.05, 1e-9);
  EXPECT_NEAR(speed.pass_seconds, 0.25 + 0.2, 1e-9);
  EXPECT_EQ(speed.memory_bandwidth, 4e9);
  EXPECT_EQ(speed.process_bytes, 70e6);
}

// A small batch that took longer than a large one: noise, not a negative rate.
TEST(MeasurementTest, OneBatchSizeOrNoiseGivesTheRateOfTheLargest) {
  const ModelCosts model = SimpleModel({10, 10});
  ComputeMeasurement measured = Measured();
  measured.passes = {{16, 2.0, 9.0}, {64, 1.0, 2.0}};
  ComputeSpeed speed = SpeedOf(measured, model);
  EXPECT_DOUBLE_EQ(speed.forward_flops, 2 * 64);
  EXPECT_DOUBLE_EQ(speed.backward_flops, 4 * 32);
  EXPECT_EQ(speed.pass_seconds, 0);
  measured.passes = {{64, 1.0, 2.0}};
  speed = SpeedOf(measured, model);
  EXPECT_DOUBLE_EQ(speed.forward_flops, 2 * 64);
  measured.passes = {};
  speed = SpeedOf(measured, model);
  EXPECT_TRUE(std::isinf(speed.forward_flops));
}

TEST(MeasurementTest, WorkersSideBySideCountByTheirMean) {
  ComputeMeasurement one;
  one.sample_shape = {3};
  one.passes = {{8, 1.0, 2.0}};
  one.update_seconds = 1;
  one.memory_bandwidth = 10;
  one.process_bytes = 5;
  ComputeMeasurement other = one;
  other.passes = {{8, 3.0, 6.0}};
  other.update_seconds = 3;
  other.memory_bandwidth = 30;
  other.process_bytes = 7;
  const absl::StatusOr<ComputeMeasurement> mean = MeanOf({one, other});
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_EQ(mean->passes[0].forward_seconds, 2);
  EXPECT_EQ(mean->passes[0].backward_seconds, 4);
  EXPECT_EQ(mean->update_seconds, 2);
  EXPECT_EQ(mean->memory_bandwidth, 20);
  EXPECT_EQ(mean->process_bytes, 7);
  other.passes[0].rows = 9;
  EXPECT_FALSE(MeanOf({one, other}).ok());
  other.passes.clear();
  EXPECT_FALSE(MeanOf({one, other}).ok());
  EXPECT_FALSE(MeanOf({}).ok());
}

}  // namespace
}  // namespace tributary
