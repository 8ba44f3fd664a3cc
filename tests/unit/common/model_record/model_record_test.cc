// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/model_record.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "common/model_record/check_preprocessing.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;
using nlohmann::json;
using testing::StatusIs;
using testing::TemporaryFolderTest;

// A table with two numbers and a column of three categories.
v1::Preprocessing Table() {
  v1::Preprocessing table;
  table.set_source("csv");
  table.add_feature_shape(5);
  table.set_target_width(1);
  v1::NumericFeatures* numeric = table.mutable_numeric();
  numeric->set_count(2);
  for (float value : {1.0f, 10.0f}) numeric->add_mean(value);
  for (float value : {2.0f, 4.0f}) numeric->add_deviation(value);
  v1::CsvTable* csv = table.mutable_csv();
  csv->set_header(true);
  csv->set_delimiter(",");
  csv->set_columns(4);
  csv->mutable_label()->set_index(0);
  csv->add_numeric()->set_index(1);
  csv->add_numeric()->set_index(3);
  v1::CsvCategories* colour = csv->add_categorical();
  colour->mutable_column()->set_index(2);
  for (const char* word : {"blue", "green", "red"}) {
    colour->add_categories(word);
  }
  for (const char* name : {"cat", "dog"}) table.add_class_names(name);
  return table;
}

v1::ModelRecord Record() {
  v1::ModelRecord record;
  record.set_format_version(kModelFormatVersion);
  record.set_name("animals");
  v1::LinearSpec* linear = record.add_sequential()->mutable_linear();
  linear->set_in(5);
  linear->set_out(2);
  record.mutable_loss()->mutable_cross_entropy();
  record.set_output(v1::OUTPUT_KIND_CLASSES);
  *record.mutable_preprocessing() = Table();
  record.mutable_training_data()->set_checksum(0xfedcba98);
  return record;
}

TEST(ModelRecordTest, ReadsBackWhatItWrites) {
  for (const auto& metrics :
       {std::optional<ModelMetrics>(),
        std::optional<ModelMetrics>(ModelMetrics{.status = "done"})}) {
    const auto read =
        ParseModelRecord("model.json", ModelRecordJson(Record(), metrics));
    TRIBUTARY_EXPECT_OK(read);
    EXPECT_TRUE(MessageDifferencer::Equals(*read, Record()));
  }
}

TEST(ModelRecordTest, MetricsAreNullUntilTheRunEnds) {
  EXPECT_TRUE(json::parse(ModelRecordJson(Record(), std::nullopt))["metrics"]
                  .is_null());
  const ModelMetrics metrics{.status = "done",
                             .steps = 7,
                             .final_loss = 0.5,
                             .test = {{"accuracy", 0.75}, {"auc", NAN}},
                             .weights_sha256 = "ab"};
  const json written =
      json::parse(ModelRecordJson(Record(), metrics))["metrics"];
  EXPECT_EQ(written["status"], "done");
  EXPECT_EQ(written["steps"], 7);
  EXPECT_EQ(written["final_loss"], 0.5);
  EXPECT_EQ(written["test"]["accuracy"], 0.75);
  EXPECT_TRUE(written["test"]["auc"].is_null());
  EXPECT_EQ(written["weights_sha256"], "ab");
}

TEST(ModelRecordTest, OtherVersionsAndTextsAreRefused) {
  const std::string text = ModelRecordJson(Record(), std::nullopt);
  const auto parse = [](const std::string& changed) {
    return ParseModelRecord("model.json", changed);
  };
  EXPECT_THAT(parse(absl::StrReplaceAll(
                  text, {{"\"format_version\": 1", "\"format_version\": 2"}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "model.json: wanted format_version 1, got 2"));
  EXPECT_THAT(parse("[1]"), StatusIs(absl::StatusCode::kInvalidArgument,
                                     "model.json: wanted a JSON object"));
  EXPECT_THAT(parse(text.substr(0, text.size() / 2)),
              StatusIs(absl::StatusCode::kInvalidArgument, "a JSON object"));
  EXPECT_THAT(parse(absl::StrReplaceAll(text, {{"\"output\": \"classes\"",
                                                "\"output\": \"binary\""}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "output is not that of the loss"));
  EXPECT_THAT(parse(absl::StrReplaceAll(text, {{"\"in\": 5", "\"in\": []"}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "model.json: sequential.0.linear.in: wants"));
}

TEST(CheckPreprocessingTest, AcceptsATable) {
  TRIBUTARY_EXPECT_OK(CheckPreprocessing(Table()));
}

// Every change makes one field contradict the others.
TEST(CheckPreprocessingTest, ContradictionsAreRefused) {
  const auto refused = [](void (*change)(v1::Preprocessing*),
                          const char* message) {
    v1::Preprocessing table = Table();
    change(&table);
    EXPECT_THAT(CheckPreprocessing(table),
                StatusIs(absl::StatusCode::kInvalidArgument, message));
  };
  refused([](v1::Preprocessing* p) { p->set_feature_shape(0, 6); },
          "features do not add up");
  refused([](v1::Preprocessing* p) { p->set_feature_shape(0, -5); },
          "feature_shape is impossible");
  refused(
      [](v1::Preprocessing* p) {
        p->add_feature_shape(int64_t{1} << 31);
        p->add_feature_shape(int64_t{1} << 31);
      },
      "feature_shape is impossible");
  refused([](v1::Preprocessing* p) { p->mutable_numeric()->add_mean(1); },
          "3 means and 2 deviations");
  refused([](v1::Preprocessing* p) { p->mutable_numeric()->add_offset(1); },
          "1 offsets and 2 means");
  refused(
      [](v1::Preprocessing* p) {
        p->mutable_numeric()->add_offset(1);
        p->mutable_numeric()->add_offset(INFINITY);
      },
      "numeric.offset is not finite");
  refused(
      [](v1::Preprocessing* p) { p->mutable_numeric()->set_deviation(1, 0); },
      "deviation is not positive");
  refused(
      [](v1::Preprocessing* p) {
        p->mutable_csv()->mutable_numeric(1)->set_index(4);
      },
      "has a column 4 of 4");
  refused(
      [](v1::Preprocessing* p) {
        p->mutable_csv()->mutable_label()->set_index(-1);
      },
      "has a column -1 of 4");
  refused(
      [](v1::Preprocessing* p) {
        p->mutable_csv()->mutable_categorical(0)->set_categories(0, "pink");
      },
      "categories do not ascend");
  refused([](v1::Preprocessing* p) { p->mutable_csv()->set_delimiter(""); },
          "one character as delimiter");
  refused([](v1::Preprocessing* p) { p->set_source("text"); },
          "source does not fit");
  refused(
      [](v1::Preprocessing* p) { p->set_class_names(0, p->class_names(1)); },
      "class_names has a name twice");
}

TEST(CheckPreprocessingTest, ClassesMayStandInAnyOrder) {
  v1::Preprocessing table = Table();
  table.mutable_class_names()->SwapElements(0, 1);
  TRIBUTARY_EXPECT_OK(CheckPreprocessing(table));
}

TEST(CheckPreprocessingTest, FillValuesFitTheNumericColumns) {
  const auto check = [](int values, bool texts, bool skip) {
    v1::Preprocessing table = Table();
    for (int i = 0; i < values; ++i) table.mutable_csv()->add_fill(i);
    if (texts) table.mutable_csv()->add_missing("?");
    table.mutable_csv()->set_skip_missing(skip);
    return CheckPreprocessing(table);
  };
  TRIBUTARY_EXPECT_OK(check(2, true, false));
  TRIBUTARY_EXPECT_OK(check(0, true, true));
  EXPECT_THAT(check(1, true, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "csv.fill has 1 values, wanted 2"));
  EXPECT_THAT(check(2, false, false),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted 0"));
  EXPECT_THAT(check(2, true, true),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted 0"));
  EXPECT_THAT(
      check(0, false, true),
      StatusIs(absl::StatusCode::kInvalidArgument, "skip_missing wants texts"));
  v1::Preprocessing table = Table();
  table.mutable_csv()->add_missing("?");
  table.mutable_csv()->add_fill(1);
  table.mutable_csv()->add_fill(1e39);
  EXPECT_THAT(CheckPreprocessing(table),
              StatusIs(absl::StatusCode::kInvalidArgument, "not finite"));
}

TEST(CheckPreprocessingTest, AVocabularyAscendsWithinItsRange) {
  v1::Preprocessing text;
  text.set_source("text");
  text.add_feature_shape(4);
  text.mutable_text()->set_length(4);
  for (int token : {10, 97, 255}) text.mutable_text()->add_vocabulary(token);
  TRIBUTARY_EXPECT_OK(CheckPreprocessing(text));
  text.mutable_text()->set_tokens(v1::TextSource::BYTES);
  TRIBUTARY_EXPECT_OK(CheckPreprocessing(text));
  text.mutable_text()->add_vocabulary(256);
  EXPECT_THAT(CheckPreprocessing(text),
              StatusIs(absl::StatusCode::kInvalidArgument, "0 to 255"));
  text.mutable_text()->set_vocabulary(3, 255);
  EXPECT_THAT(CheckPreprocessing(text),
              StatusIs(absl::StatusCode::kInvalidArgument, "does not ascend"));
}

class ReadModelRecordTest : public TemporaryFolderTest {};

TEST_F(ReadModelRecordTest, ADirectoryWithoutTheFileIsNamed) {
  EXPECT_THAT(ReadModelRecord(folder()),
              StatusIs(absl::StatusCode::kNotFound, "has no model.json"));
  Write("job.yaml", "name: mlp\nprogram: {}\n");
  EXPECT_THAT(ReadModelRecord(folder()),
              StatusIs(absl::StatusCode::kNotFound,
                       "because a program of its own trained it: load "));
  Write("model.json", ModelRecordJson(Record(), std::nullopt));
  TRIBUTARY_EXPECT_OK(ReadModelRecord(folder()));
}

}  // namespace
}  // namespace tributary
