// SPDX-License-Identifier: Apache-2.0
// A job that starts from the weights of a run keeps the places of its classes
// and inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/model_record/model_record.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "worker/train/check/check_data.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class InitialMeaningTest : public testing::TemporaryFolderTest {
 protected:
  InitialMeaningTest() {
    std::filesystem::create_directory(Path("run"));
    WriteWeights(1);
    Write("t.csv", "x,y\n1,cat\n2,dog\n");
  }
  void WriteWeights(int64_t inputs) {
    WriteTensors({{"0.weight", {2, inputs}}, {"0.bias", {2}}});
    inputs_ = inputs;
    layers_ = absl::StrCat("{linear: {in: ", inputs, ", out: 2}}");
  }
  void WriteTensors(const ParameterSpecs& specs) {
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    TRIBUTARY_EXPECT_OK(WriteSafetensors(
        Path("run/weights.safetensors"), specs,
        std::vector<const float*>(specs.size(), values.data())));
  }
  // The classes of the run and its columns, in their order.
  void WriteRecord(const std::vector<std::string>& classes,
                   const std::vector<std::string>& columns = {}) {
    v1::ModelRecord record;
    record.set_format_version(kModelFormatVersion);
    record.mutable_loss()->mutable_cross_entropy();
    record.set_output(v1::OUTPUT_KIND_CLASSES);
    v1::LinearSpec* linear = record.add_sequential()->mutable_linear();
    linear->set_in(inputs_);
    linear->set_out(2);
    v1::Preprocessing* preprocessing = record.mutable_preprocessing();
    preprocessing->set_source(columns.empty() ? "npy" : "csv");
    if (!columns.empty()) {
      v1::CsvTable* table = preprocessing->mutable_csv();
      table->set_header(true);
      table->set_delimiter(",");
      table->set_columns(3);
      table->mutable_label()->set_index(2);
      for (const std::string& name : columns) {
        v1::CsvColumn* column = table->add_numeric();
        column->set_index(table->numeric_size() - 1);
        column->set_name(name);
      }
    }
    preprocessing->add_feature_shape(inputs_);
    *preprocessing->mutable_numeric() = numeric_;
    preprocessing->mutable_numeric()->set_count(inputs_);
    preprocessing->set_target_width(1);
    for (const std::string& name : classes) {
      preprocessing->add_class_names(name);
    }
    WriteModel(record);
  }
  // The tokens of the run, by their ids.
  void WriteTextRecord(const std::vector<int32_t>& tokens) {
    v1::ModelRecord record;
    record.set_format_version(kModelFormatVersion);
    record.mutable_loss()->mutable_cross_entropy();
    record.set_output(v1::OUTPUT_KIND_CLASSES);
    v1::EmbeddingSpec* embedding = record.add_sequential()->mutable_embedding();
    embedding->set_tokens(tokens.size());
    embedding->set_dim(1);
    v1::LinearSpec* linear = record.add_sequential()->mutable_linear();
    linear->set_in(1);
    linear->set_out(tokens.size());
    v1::Preprocessing* preprocessing = record.mutable_preprocessing();
    preprocessing->set_source("text");
    preprocessing->add_feature_shape(2);
    preprocessing->set_target_width(2);
    preprocessing->mutable_text()->set_length(2);
    preprocessing->mutable_text()->mutable_vocabulary()->Add(tokens.begin(),
                                                             tokens.end());
    WriteModel(record);
  }
  absl::Status Check(const std::string& csv = "",
                     const std::string& rules = "") {
    return CheckSource(
        absl::StrCat("csv: {path: t.csv, columns: {label: y}", csv, "}"),
        rules);
  }
  absl::Status CheckSource(const std::string& source,
                           const std::string& rules = "") {
    return NoteOn(source, rules).status();
  }
  absl::StatusOr<std::string> NoteOn(const std::string& source,
                                     const std::string& rules = "") {
    return CheckDataOfFile(
        Write(
            "job.yaml",
            absl::StrCat("model:\n"
                         "  initialize_from: ",
                         from_, "\n", rules, "  sequential: [", layers_,
                         "]\n"
                         "data:\n"
                         "  train: {",
                         source,
                         "}\n"
                         "  batch_size: 1\n"
                         "training: {steps: 1, loss: cross_entropy, optimizer: "
                         "{sgd: {learning_rate: 1}}}\n")),
        {});
  }

 private:
  void WriteModel(const v1::ModelRecord& record) {
    Write("run/model.json", ModelRecordJson(record, std::nullopt));
    TRIBUTARY_ASSERT_OK(ReadModelRecord(Path("run")));
  }

 protected:
  int64_t inputs_ = 1;
  std::string layers_;
  std::string from_ = "run";
  v1::NumericFeatures numeric_;
};

TEST_F(InitialMeaningTest, AnotherOrderIsRefusedWithItsRemedy) {
  WriteRecord({"dog", "cat"});
  const std::string message(Check().message());
  EXPECT_THAT(message,
              StartsWith(absl::StrCat(Path("job.yaml"),
                                      ":2: model.initialize_from: class 0 is "
                                      "\"cat\" in the training data, which is "
                                      "class 1 in ",
                                      Path("run"),
                                      "/model.json, so its output "
                                      "would be that of another class")));
  EXPECT_THAT(message,
              HasSubstr("set data.train.csv.classes to [\"dog\", \"cat\"], if "
                        "these are all, or start these tensors from the seed, "
                        "as in model.initialize_rules: [{tensors: [0.*], "
                        "fresh: true}]"));
  TRIBUTARY_EXPECT_OK(Check(", classes: [\"dog\", \"cat\"]"));
  TRIBUTARY_EXPECT_OK(
      Check("", "  initialize_rules: [{tensors: [0.*], fresh: true}]\n"));
}

TEST_F(InitialMeaningTest, AColumnAtAnotherPlaceIsRefused) {
  Write("t.csv", "a,x,y\n5,1,cat\n6,2,dog\n");
  WriteWeights(2);
  WriteRecord({"cat", "dog"}, {"x", "a"});
  EXPECT_THAT(Check().message(),
              HasSubstr("input 0 is \"a\" in the training data, which is input "
                        "1 in "));
  TRIBUTARY_EXPECT_OK(
      Check("", "  initialize_rules: [{tensors: [0.*], fresh: true}]\n"));
  WriteRecord({"cat", "dog"}, {"a", "x"});
  TRIBUTARY_EXPECT_OK(Check());
  WriteRecord({"cat", "dog"}, {"other", "x"});
  TRIBUTARY_EXPECT_OK(Check());
}

TEST_F(InitialMeaningTest, ALinkLeadsToTheRun) {
  WriteRecord({"dog", "cat"});
  std::filesystem::create_symlink(Path("run/weights.safetensors"),
                                  Path("start.safetensors"));
  from_ = "start.safetensors";
  EXPECT_THAT(Check().message(), HasSubstr("is class 1 in "));
}

TEST_F(InitialMeaningTest, ANormInFrontTakesTheInputs) {
  Write("t.csv", "a,x,y\n5,1,cat\n6,2,dog\n");
  inputs_ = 2;
  WriteTensors({{"0.weight", {2}},
                {"0.bias", {2}},
                {"1.weight", {2, 2}},
                {"1.bias", {2}}});
  layers_ = "{layernorm: {features: 2}}, {linear: {in: 2, out: 2}}";
  WriteRecord({"cat", "dog"}, {"x", "a"});
  EXPECT_THAT(Check("", "  initialize_rules: [{tensors: [1.*], fresh: true}]\n")
                  .message(),
              HasSubstr("{tensors: [0.*], fresh: true}"));
  TRIBUTARY_EXPECT_OK(
      Check("", "  initialize_rules: [{tensors: [0.*, 1.*], fresh: true}]\n"));
}

TEST_F(InitialMeaningTest, ColumnsWithoutNamesAreComparedByPosition) {
  Write("t.csv", "5,1,cat\n6,2,dog\n");
  WriteWeights(2);
  WriteRecord({"cat", "dog"}, {"", ""});
  const std::string source =
      "csv: {path: t.csv, header: false, columns: {label: 2";
  TRIBUTARY_EXPECT_OK(CheckSource(source + "}}"));
  EXPECT_THAT(CheckSource(source + ", numeric: [1, 0]}}").message(),
              HasSubstr("input 0 is \"#1\" in the training data, which is "
                        "input 1 in "));
  Write("t.csv", "5,1,cat,9\n6,2,dog,9\n");  // another table
  TRIBUTARY_EXPECT_OK(CheckSource(source + ", numeric: [1, 0]}}"));
}

TEST_F(InitialMeaningTest, ATokenWithAnotherRowOfTheTableIsRefused) {
  Write("text", "bcbcbc");
  WriteTensors({{"0.weight", {2, 1}}, {"1.weight", {2, 1}}, {"1.bias", {2}}});
  layers_ = "{embedding: {tokens: 2, dim: 1}}, {linear: {in: 1, out: 2}}";
  WriteTextRecord({'a', 'b'});
  EXPECT_THAT(CheckSource("text: {path: text, length: 2}").message(),
              AllOf(HasSubstr("token 0 is \"b\" in the training data, which is "
                              "token 1 in "),
                    HasSubstr("{tensors: [0.*, 1.*], fresh: true}")));
  TRIBUTARY_EXPECT_OK(
      CheckSource("text: {path: text, length: 2}",
                  "  initialize_rules: [{tensors: '*', fresh: true}]\n"));
  WriteTextRecord({'b', 'd'});  // "c" is a new one
  TRIBUTARY_EXPECT_OK(CheckSource("text: {path: text, length: 2}"));
}

TEST_F(InitialMeaningTest, BothBranchesOfAResidualTakeTheInputs) {
  Write("t.csv", "a,x,y\n5,1,cat\n6,2,dog\n");
  inputs_ = 2;
  WriteTensors({{"0.body.0.weight", {2, 2}},
                {"0.body.0.bias", {2}},
                {"0.shortcut.0.weight", {2, 2}},
                {"0.shortcut.0.bias", {2}}});
  layers_ =
      "{residual: {body: [{linear: {in: 2, out: 2}}], shortcut: [{linear: {in: "
      "2, out: 2}}]}}";
  const auto with_fresh = [this](const std::string& tensors) {
    return Check("", absl::StrCat("  initialize_rules: [{tensors: ", tensors,
                                  ", fresh: true}]\n"));
  };
  WriteRecord({"cat", "dog"}, {"x", "a"});
  EXPECT_THAT(with_fresh("0.body.*").message(),
              AllOf(HasSubstr("input 0 is \"a\""),
                    HasSubstr("{tensors: [0.shortcut.0.*], fresh: true}")));
  TRIBUTARY_EXPECT_OK(with_fresh("'0.*'"));
  WriteRecord({"dog", "cat"}, {"a", "x"});
  EXPECT_THAT(with_fresh("0.shortcut.*").message(),
              AllOf(HasSubstr("class 0 is \"cat\""),
                    HasSubstr("{tensors: [0.body.0.*], fresh: true}")));
}

TEST_F(InitialMeaningTest, WithoutAShortcutTheNextLayerTakesThemToo) {
  Write("t.csv", "a,x,y\n5,1,cat\n6,2,dog\n");
  inputs_ = 2;
  WriteTensors({{"0.body.0.weight", {2, 2}},
                {"0.body.0.bias", {2}},
                {"1.weight", {2, 2}},
                {"1.bias", {2}}});
  layers_ =
      "{residual: {body: [{linear: {in: 2, out: 2}}]}}, {linear: {in: 2, out: "
      "2}}";
  WriteRecord({"cat", "dog"}, {"x", "a"});
  EXPECT_THAT(Check("", "  initialize_rules: [{tensors: 0.*, fresh: true}]\n")
                  .message(),
              HasSubstr("{tensors: [1.*], fresh: true}"));
}

TEST_F(InitialMeaningTest, ALabelThatIsANumberIsTheClassOfItsName) {
  Write("t.csv", "x,y\n1,0\n2,1\n");
  WriteRecord({"1", "0"}, {"x"});
  EXPECT_THAT(Check().message(),
              AllOf(HasSubstr("class 0 is \"0\" in the training data, which is "
                              "class 1 in "),
                    HasSubstr("data.train.csv.classes to [\"1\", \"0\"]")));
  WriteRecord({}, {"x"});
  TRIBUTARY_EXPECT_OK(Check());
  EXPECT_THAT(Check(", classes: [\"1\", \"0\"]").message(),
              AllOf(HasSubstr("class 0 is \"1\""),
                    HasSubstr("data.train.csv.classes to [\"0\", \"1\"]")));
  WriteRecord({"-1", "0"}, {"x"});
  EXPECT_THAT(Check().message(), HasSubstr("class 0 is \"0\""));
  WriteRecord({"cat", "dog"}, {"x"});
  TRIBUTARY_EXPECT_OK(Check());
  // Labels of npy and idx are positions, not names.
  WriteRecord({"1", "2"});
  TRIBUTARY_EXPECT_OK(Check());
}

TEST_F(InitialMeaningTest, TheWeightsOfTheRunMayLieElsewhere) {
  WriteRecord({"dog", "cat"});
  std::filesystem::create_directory(Path("disk"));
  std::filesystem::rename(Path("run/weights.safetensors"), Path("disk/w"));
  std::filesystem::create_symlink(Path("disk/w"),
                                  Path("run/weights.safetensors"));
  EXPECT_THAT(Check().message(), HasSubstr("is class 1 in "));
}

TEST_F(InitialMeaningTest, OtherClassesAreAnotherTask) {
  WriteRecord({"cat", "dog"});
  TRIBUTARY_EXPECT_OK(Check());
  WriteRecord({"cat", "horse"});
  TRIBUTARY_EXPECT_OK(Check());
  WriteRecord({"horse", "cat"});
  EXPECT_THAT(Check().message(),
              HasSubstr("class 0 is \"cat\" in the training"));
  WriteRecord({});
  TRIBUTARY_EXPECT_OK(Check());
  std::filesystem::remove(Path("run/model.json"));
  TRIBUTARY_EXPECT_OK(Check());
}

// The table's x has the mean 1.5 and the deviation 0.5.
TEST_F(InitialMeaningTest, AnotherScaleIsANote) {
  const auto note = [this](const std::string& normalize, float mean,
                           float deviation, const std::string& rules = "") {
    numeric_.Clear();
    if (deviation > 0) {
      numeric_.add_mean(mean);
      numeric_.add_deviation(deviation);
    }
    WriteRecord({"cat", "dog"}, {"x"});
    const auto text = NoteOn(
        "csv: {path: t.csv, columns: {label: y}" + normalize + "}", rules);
    TRIBUTARY_EXPECT_OK(text);
    return text.value_or("");
  };
  const std::string standardize = ", normalize: standardize";
  EXPECT_EQ(note("", 40, 10),
            absl::StrCat(
                Path("job.yaml"),
                ":2: model.initialize_from: input 0 (\"x\") is (x - 40) / 10 "
                "in ",
                Path("run"),
                "/model.json, but x in the training data, so the weights that "
                "it starts with do not fit these inputs; use the same "
                "data.train.csv.normalize as that run"));
  EXPECT_THAT(note(standardize, 0, 0), HasSubstr("is x in "))
      << "not scaled before";
  EXPECT_THAT(note(standardize, 2.5f, 0.5f), HasSubstr("(x - 2.5) / 0.5"));
  EXPECT_THAT(note(standardize, 1.5f, 2.5f), HasSubstr("(x - 1.5) / 2.5"));
  // Another table's statistics differ a little.
  EXPECT_EQ(note(standardize, 1.7f, 0.9f), "");
  EXPECT_EQ(note("", 0, 0), "");
  EXPECT_EQ(note("", 0, 1), "");
  EXPECT_EQ(
      note("", 40, 10, "  initialize_rules: [{tensors: [0.*], fresh: true}]\n"),
      "");
}

}  // namespace
}  // namespace tributary
