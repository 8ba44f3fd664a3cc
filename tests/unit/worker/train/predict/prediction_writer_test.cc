// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/prediction_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/predict/records.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

class PredictionWriterTest : public testing::TemporaryFolderTest {
 protected:
  // The file for these outputs, one prediction each.
  std::string Written(const v1::ModelRecord& record,
                      PredictionWriter::Options options,
                      const std::vector<std::vector<float>>& outputs) {
    options.path = Path("predictions");
    options.outputs = static_cast<int64_t>(outputs[0].size());
    auto writer = PredictionWriter::Create(record, options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const std::vector<float>& one : outputs) {
      EXPECT_TRUE((*writer)->Write({.row = 3, .position = 4}, one).ok());
    }
    EXPECT_TRUE((*writer)->Finish().ok());
    return Read("predictions");
  }
};

// e^log(3) and e^0 are 3 and 1 of 4.
TEST_F(PredictionWriterTest, ClassesHaveProbabilities) {
  EXPECT_EQ(Written(ClassRecord({"cat", "dog"}), {},
                    {{std::log(3.0f), 0}, {0, std::log(3.0f)}}),
            "prediction,probability_cat,probability_dog\n"
            "cat,0.750000004,0.249999996\n"
            "dog,0.249999996,0.750000004\n");
  EXPECT_EQ(Written(ClassRecord({"cat", "dog"}), {.top = true}, {{1, 1}}),
            "prediction,probability\ncat,0.5\n");
}

// The probabilities of 0 and 1e-20 are equal in double.
TEST_F(PredictionWriterTest, EqualProbabilitiesAreDecidedByTheLogits) {
  v1::ModelRecord record = ClassRecord({"no", "yes"});
  EXPECT_EQ(Written(record, {.top = true}, {{0, 1e-20f}, {0, 0}}),
            "prediction,probability\nyes,0.5\nno,0.5\n");
  record.set_output(v1::OUTPUT_KIND_BINARY);
  EXPECT_EQ(Written(record, {.top = true}, {{-1e-20f}, {-0.0f}}),
            "prediction,probability\nno,0.5\nyes,0.5\n");
}

TEST_F(PredictionWriterTest, OutputsThatAreNotNumbersDecideForNoClass) {
  const std::vector<std::vector<float>> outputs = {{NAN, 1}, {1, NAN}};
  EXPECT_EQ(Written(ClassRecord({"cat", "dog"}), {.top = true}, outputs),
            "prediction,probability\n,\n,\n");
  EXPECT_EQ(Written(ClassRecord({"cat", "dog"}),
                    {.format = PredictionFormat::kJson, .top = true}, outputs),
            "{\"prediction\": null, \"probability\": null}\n"
            "{\"prediction\": null, \"probability\": null}\n");
  const v1::ModelRecord record = ClassRecord({});
  auto writer = PredictionWriter::Create(
      record, {.path = Path("predictions"), .outputs = 2});
  TRIBUTARY_ASSERT_OK(writer);
  TRIBUTARY_EXPECT_OK((*writer)->Write({}, {1, NAN}));
  TRIBUTARY_EXPECT_OK((*writer)->Write({}, {1, 0}));
  EXPECT_EQ((*writer)->undecided(), 1);
}

TEST_F(PredictionWriterTest, NamesAreQuotedWhereCsvWantsIt) {
  EXPECT_EQ(
      Written(ClassRecord({"a,b", "say \"x\""}), {.top = true}, {{0, 900}}),
      "prediction,probability\n\"say \"\"x\"\"\",1\n");
}

TEST_F(PredictionWriterTest, ClassesWithoutNamesAreNumbers) {
  EXPECT_EQ(Written(ClassRecord({}), {.top = true}, {{0, 0, 900}}),
            "prediction,probability\n2,1\n");
  const json line = json::parse(Written(
      ClassRecord({}), {.format = PredictionFormat::kJson}, {{0, 0, 900}}));
  EXPECT_EQ(line["prediction"], 2);
  EXPECT_EQ(line["probabilities"]["2"], 1);
}

TEST_F(PredictionWriterTest, JsonHasOneObjectALine) {
  std::istringstream lines(Written(ClassRecord({"caf\xE9", "dog"}),
                                   {.format = PredictionFormat::kJson},
                                   {{0, 1}, {1, 0}}));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const json first = json::parse(line);
  EXPECT_EQ(first["prediction"], "dog");
  EXPECT_NEAR(first["probabilities"]["dog"].get<double>(), 1 / (1 + exp(-1)),
              1e-8);
  ASSERT_TRUE(std::getline(lines, line));
  // A name that is not UTF-8 does not break the file.
  EXPECT_EQ(json::parse(line)["prediction"], "caf\xEF\xBF\xBD");
}

TEST_F(PredictionWriterTest, OneLogitIsForTheSecondOfTwoClasses) {
  v1::ModelRecord record = ClassRecord({"<=50K", ">50K"});
  record.set_output(v1::OUTPUT_KIND_BINARY);
  EXPECT_EQ(Written(record, {}, {{std::log(3.0f)}, {0}}),
            "prediction,probability_<=50K,probability_>50K\n"
            ">50K,0.249999996,0.750000004\n"
            ">50K,0.5,0.5\n");
}

TEST_F(PredictionWriterTest, NumbersAreTheOutputs) {
  v1::ModelRecord record = ClassRecord({});
  record.set_output(v1::OUTPUT_KIND_NUMBERS);
  EXPECT_EQ(Written(record, {}, {{-1.5f}, {0.1f}}),
            "prediction\n-1.5\n0.100000001\n");
}

TEST_F(PredictionWriterTest, WhatIsNotANumberIsEmpty) {
  v1::ModelRecord record = ClassRecord({});
  record.set_output(v1::OUTPUT_KIND_NUMBERS);
  const std::vector<std::vector<float>> outputs = {
      {std::numeric_limits<float>::infinity()}, {2}, {NAN}};
  EXPECT_EQ(Written(record, {}, outputs), "prediction\n\"\"\n2\n\"\"\n");
  EXPECT_EQ(Written(record, {.format = PredictionFormat::kJson}, outputs),
            "{\"prediction\": null}\n{\"prediction\": 2}\n"
            "{\"prediction\": null}\n");
  auto writer = PredictionWriter::Create(
      record, {.path = Path("predictions"), .outputs = 1});
  TRIBUTARY_ASSERT_OK(writer);
  TRIBUTARY_EXPECT_OK((*writer)->Write({}, {NAN}));
  EXPECT_EQ((*writer)->undecided(), 1);
}

TEST_F(PredictionWriterTest, SeveralValuesOfARowSayTheirPosition) {
  EXPECT_EQ(
      Written(ClassRecord({}), {.top = true, .positions = true}, {{9, 0}}),
      "row,position,prediction,probability\n3,4,0,0.999876605\n");
}

TEST_F(PredictionWriterTest, WithoutFinishThereIsNoFile) {
  {
    auto writer = PredictionWriter::Create(
        ClassRecord({}), {.path = Path("predictions"), .outputs = 2});
    TRIBUTARY_ASSERT_OK(writer);
  }
  EXPECT_EQ(NumFiles(), 0);
}

// Large logits neither overflow nor vanish.
TEST_F(PredictionWriterTest, ProbabilitiesOfLargeLogitsAreFinite) {
  std::vector<double> probabilities;
  ProbabilitiesOf(v1::OUTPUT_KIND_CLASSES, {1e30f, 1e30f, -1e30f},
                  &probabilities);
  EXPECT_THAT(probabilities, ElementsAre(0.5, 0.5, 0));
  ProbabilitiesOf(v1::OUTPUT_KIND_BINARY, {-1000}, &probabilities);
  EXPECT_THAT(probabilities, ElementsAre(1, DoubleNear(0, 1e-300)));
}

}  // namespace
}  // namespace tributary
