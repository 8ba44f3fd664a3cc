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
    const ParameterSpecs specs = {{"0.weight", {2, inputs}}, {"0.bias", {2}}};
    const std::vector<float> values = {1, 2, 3, 4};
    TRIBUTARY_EXPECT_OK(WriteSafetensors(Path("run/weights.safetensors"), specs,
                                         {values.data(), values.data()}));
    inputs_ = inputs;
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
    preprocessing->mutable_numeric()->set_count(inputs_);
    preprocessing->set_target_width(1);
    for (const std::string& name : classes) {
      preprocessing->add_class_names(name);
    }
    Write("run/model.json", ModelRecordJson(record, std::nullopt));
    TRIBUTARY_ASSERT_OK(ReadModelRecord(Path("run")));
  }
  absl::Status Check(const std::string& csv = "",
                     const std::string& rules = "") {
    return CheckDataOfFile(
               Write("job.yaml",
                     absl::StrCat(
                         "model:\n"
                         "  initialize_from: run\n",
                         rules, "  sequential: [linear: {in: ", inputs_,
                         ", out: 2}]\n"
                         "data:\n"
                         "  train: {csv: {path: t.csv, columns: {label: y}",
                         csv,
                         "}}\n"
                         "  batch_size: 1\n"
                         "training: {steps: 1, loss: cross_entropy, optimizer: "
                         "{sgd: {learning_rate: 1}}}\n")),
               {})
        .status();
  }

  int64_t inputs_ = 1;
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

}  // namespace
}  // namespace tributary
