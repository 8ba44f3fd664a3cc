// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/confusion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/worker/train/predict/records.h"

namespace tributary {
namespace {

TEST(ConfusionTest, CountsPredictionsByLabel) {
  Confusion confusion(ClassRecord({"cat", "dog", "eel"}), 3);
  Batch batch;
  batch.labels = {0, 0, 2};
  confusion.Add(batch, std::vector<float>{9, 1, 1,    // cat as cat
                                          1, 9, 9,    // cat as dog, the first
                                          1, 1, 9});  // eel as eel
  EXPECT_EQ(confusion.count(0, 0), 1);
  EXPECT_EQ(confusion.count(0, 1), 1);
  EXPECT_EQ(confusion.count(2, 2), 1);
  EXPECT_EQ(confusion.count(1, 1), 0);
  EXPECT_EQ(ReportText({.data = "x.csv",
                        .weights = "run/best.safetensors",
                        .rows = 3,
                        .metrics = {{"loss", 0.5}}},
                       confusion),
            "data        x.csv, 3 rows\n"
            "weights     run/best.safetensors\n"
            "loss        0.5\n"
            "\n"
            "label (down) and prediction (across)\n"
            "      cat  dog  eel\n"
            " cat    1    1    0\n"
            " dog    0    0    0\n"
            " eel    0    0    1\n");
}

TEST(ConfusionTest, OneLogitDecidesBetweenTwoClasses) {
  v1::ModelRecord record = ClassRecord({});
  record.set_output(v1::OUTPUT_KIND_BINARY);
  Confusion confusion(record, 1);
  Batch batch;
  batch.targets = {1, 0, 1};
  confusion.Add(batch, std::vector<float>{0, 0.1f, -0.1f});
  EXPECT_EQ(confusion.count(1, 1), 1);
  EXPECT_EQ(confusion.count(0, 1), 1);
  EXPECT_EQ(confusion.count(1, 0), 1);
  EXPECT_EQ(confusion.name(1), "1");
}

// As in the evaluation, which counts such outputs as wrong.
TEST(ConfusionTest, OutputsThatAreNotNumbersAreNoPrediction) {
  Confusion confusion(ClassRecord({"a", "b"}), 2);
  Batch batch;
  batch.labels = {0, 1, 0};
  confusion.Add(batch, std::vector<float>{NAN, 1, 1, NAN, 1, 0});
  EXPECT_EQ(confusion.count(0, 0), 1);
  EXPECT_EQ(confusion.count(0, 1) + confusion.count(1, 0), 0);
  EXPECT_EQ(confusion.count(1, 1), 0);
  EXPECT_EQ(confusion.undecided(), 2);
  EXPECT_NE(ReportText({.data = "x", .rows = 3}, confusion)
                .find("undecided   2 (outputs that are not numbers"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(
                ReportJson({.data = "x", .rows = 3}, confusion))["undecided"],
            2);

  v1::ModelRecord record = ClassRecord({});
  record.set_output(v1::OUTPUT_KIND_BINARY);
  Confusion binary(record, 1);
  batch.targets = {0, 1};
  binary.Add(batch, std::vector<float>{NAN, NAN});
  EXPECT_EQ(binary.undecided(), 2);
}

TEST(ConfusionTest, ManyClassesAreListedByTheirConfusions) {
  Confusion confusion(ClassRecord({}), 40);
  Batch batch;
  std::vector<float> logits(2 * 40);
  logits[7] = 1;
  logits[40 + 7] = 1;
  batch.labels = {7, 3};
  confusion.Add(batch, logits);
  const std::string text = ReportText({.data = "x", .rows = 2}, confusion);
  EXPECT_NE(text.find("         1  \"3\" taken for \"7\"\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("\"7\" taken for"), std::string::npos) << text;
}

TEST(ConfusionTest, JsonHasTheWholeMatrix) {
  Confusion confusion(ClassRecord({"a", "b"}), 2);
  Batch batch;
  batch.labels = {0};
  confusion.Add(batch, std::vector<float>{0, 1});
  const auto json = nlohmann::json::parse(ReportJson(
      {.data = "x", .weights = "y", .rows = 1, .metrics = {{"accuracy", 0}}},
      confusion));
  EXPECT_EQ(json["weights"], "y");
  EXPECT_EQ(json["classes"], (nlohmann::json{"a", "b"}));
  EXPECT_EQ(json["confusion"], (nlohmann::json{{0, 1}, {0, 0}}));
  EXPECT_EQ(json["metrics"]["accuracy"], 0);
}

TEST(ConfusionTest, NumbersHaveNone) {
  v1::ModelRecord record = ClassRecord({});
  record.set_output(v1::OUTPUT_KIND_NUMBERS);
  const Confusion confusion(record, 1);
  EXPECT_TRUE(confusion.empty());
  EXPECT_EQ(ReportText({.data = "x", .weights = "y", .rows = 1}, confusion),
            "data        x, 1 rows\nweights     y\n");
}

TEST(ConfusionTest, ASetOfSeveralFilesIsNotNamedAsOne) {
  v1::ModelRecord record = ClassRecord({});
  record.set_output(v1::OUTPUT_KIND_NUMBERS);
  const Confusion confusion(record, 1);
  const auto text = [&](int64_t more_files) {
    return ReportText(
        {.data = "x", .more_files = more_files, .weights = "y", .rows = 9},
        confusion);
  };
  EXPECT_EQ(text(1), "data        x and 1 more file, 9 rows\nweights     y\n");
  EXPECT_EQ(text(2), "data        x and 2 more files, 9 rows\nweights     y\n");
}

}  // namespace
}  // namespace tributary
