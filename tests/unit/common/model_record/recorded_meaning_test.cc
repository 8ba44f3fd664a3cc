// SPDX-License-Identifier: Apache-2.0
// How far apart the scales of two runs may be.
#include "common/model_record/recorded_meaning.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

v1::Preprocessing Scaled(float byte_divisor, float mean, float deviation) {
  v1::Preprocessing preprocessing;
  preprocessing.set_source("npy");
  v1::NumericFeatures* numeric = preprocessing.mutable_numeric();
  numeric->set_count(2);
  numeric->set_byte_divisor(byte_divisor);
  if (deviation == 0) return preprocessing;
  numeric->add_mean(mean);
  numeric->add_deviation(deviation);
  return preprocessing;
}

std::string Difference(const v1::Preprocessing& before,
                       const v1::Preprocessing& now) {
  v1::ModelRecord record;
  *record.mutable_preprocessing() = before;
  return ScaleDifference(record, now, "HERE", "THERE");
}

TEST(RecordedMeaningTest, BytesThatAreDividedAndOthersDiffer) {
  EXPECT_EQ(Difference(Scaled(255, 0, 0), Scaled(1, 0, 0)),
            "input 0 is x / 255 in THERE, but x in HERE, and 1 more differ");
  EXPECT_EQ(Difference(Scaled(255, 0, 0), Scaled(255, 0, 0)), "");
  // 51 and 510 in both units.
  EXPECT_EQ(Difference(Scaled(255, 0.2f, 2), Scaled(1, 51, 510)), "");
  // Numbers may have been divided in the file.
  EXPECT_EQ(Difference(Scaled(255, 0, 0), Scaled(0, 0, 0)), "");
  EXPECT_THAT(Difference(Scaled(255, 0.5f, 0.25f), Scaled(0, 0, 0)),
              HasSubstr("input 0 is (x / 255 - 0.5) / 0.25 in THERE"));
}

TEST(RecordedMeaningTest, AnOffsetIsAPartOfTheMean) {
  v1::Preprocessing before = Scaled(0, 0.5f, 2);
  before.mutable_numeric()->add_offset(1e9);
  v1::Preprocessing now = Scaled(0, -0.5f, 2);
  now.mutable_numeric()->add_offset(1e9 + 1);
  EXPECT_EQ(Difference(before, now), "");
  now.mutable_numeric()->set_offset(0, 1e9 + 4);
  EXPECT_THAT(Difference(before, now), HasSubstr("input 0 is (x - "));
}

}  // namespace
}  // namespace tributary
