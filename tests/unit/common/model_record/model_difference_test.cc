// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/model_difference.h"

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

v1::ModelRecord Record(const std::string& text) {
  v1::ModelRecord record;
  record.set_output(v1::OUTPUT_KIND_CLASSES);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &record));
  return record;
}

std::string Difference(const std::string& before, const std::string& now) {
  return ModelDifference(Record(before), Record(now), "HERE", "THERE");
}

v1::DataSource Missing(const std::string& text) {
  v1::DataSource source;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "csv { missing { " + text + " } }", &source));
  return source;
}

std::string FillOf(const std::string& before, const std::string& now) {
  return FillDifference(Missing(before), Missing(now), "HERE", "THERE");
}

TEST(ModelDifferenceTest, LayersThatComputeOtherwiseDiffer) {
  const std::string linear = "sequential { linear { in: 2 out: 2 } } ";
  const std::string dropout = "sequential { dropout { p: 0.5 } } ";
  EXPECT_EQ(Difference(linear + "sequential { tanh {} }",
                       linear + dropout + "sequential { relu {} }"),
            "layer 2 is relu in HERE, but tanh in THERE");
  EXPECT_EQ(Difference("sequential { gelu { approximate: TANH } }",
                       "sequential { gelu {} }"),
            "layer 0 is gelu in HERE, but with other settings in THERE");
  EXPECT_EQ(Difference(linear + "sequential { relu {} }", linear),
            "the number of layers is 1 in HERE, but 2 in THERE, dropout not "
            "counted");
  EXPECT_EQ(Difference("sequential { residual { body { relu {} } } }",
                       "sequential { residual { body { silu {} } } }"),
            "layer 0 is residual in HERE, but with other settings in THERE");
}

TEST(ModelDifferenceTest, DropoutDoesNotCount) {
  EXPECT_EQ(Difference("sequential { dropout { p: 0.5 } } "
                       "sequential { residual { body { relu {} } } }",
                       "sequential { residual { body { relu {} } "
                       "body { dropout { p: 0.1 } } } }"),
            "");
}

TEST(ModelDifferenceTest, OutputsOfAnotherLossDiffer) {
  EXPECT_EQ(
      Difference("output: OUTPUT_KIND_NUMBERS", "output: OUTPUT_KIND_BINARY"),
      "the outputs are the logits of yes or no in HERE, but numbers in "
      "THERE");
}

TEST(ModelDifferenceTest, OtherConstantsForMissingNumbersDiffer) {
  EXPECT_EQ(FillOf("constant: -999", "mean: true"),
            "a missing number becomes -999 in THERE, but the column's mean in "
            "HERE");
  EXPECT_EQ(FillOf("constant: 1", "constant: 0"),
            "a missing number becomes 1 in THERE, but 0 in HERE");
  EXPECT_EQ(FillOf("constant: 1", "constant: 1"), "");
  EXPECT_EQ(FillOf("median: true", "mean: true"), "");
  EXPECT_EQ(FillOf("skip: true", "constant: 1"), "");
  EXPECT_EQ(FillOf("", "constant: 1"), "");
}

}  // namespace
}  // namespace tributary
