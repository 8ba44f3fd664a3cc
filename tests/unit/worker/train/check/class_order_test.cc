// SPDX-License-Identifier: Apache-2.0
// A job that starts from the weights of a run keeps the order of its classes.
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

class ClassOrderTest : public testing::TemporaryFolderTest {
 protected:
  ClassOrderTest() {
    std::filesystem::create_directory(Path("run"));
    const ParameterSpecs specs = {{"0.weight", {2, 1}}, {"0.bias", {2}}};
    const std::vector<float> values = {1, 2};
    TRIBUTARY_EXPECT_OK(WriteSafetensors(Path("run/weights.safetensors"), specs,
                                         {values.data(), values.data()}));
    Write("t.csv", "x,y\n1,cat\n2,dog\n");
  }
  // The classes of the run, in their order.
  void WriteRecord(const std::vector<std::string>& classes) {
    v1::ModelRecord record;
    record.set_format_version(kModelFormatVersion);
    record.mutable_loss()->mutable_cross_entropy();
    record.set_output(v1::OUTPUT_KIND_CLASSES);
    v1::LinearSpec* linear = record.add_sequential()->mutable_linear();
    linear->set_in(1);
    linear->set_out(2);
    v1::Preprocessing* preprocessing = record.mutable_preprocessing();
    preprocessing->set_source("npy");
    preprocessing->add_feature_shape(1);
    preprocessing->mutable_numeric()->set_count(1);
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
                         rules,
                         "  sequential: [linear: {in: 1, out: 2}]\n"
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
};

TEST_F(ClassOrderTest, AnotherOrderIsRefusedWithItsRemedy) {
  WriteRecord({"dog", "cat"});
  const std::string message(Check().message());
  EXPECT_THAT(message,
              StartsWith(absl::StrCat(Path("job.yaml"),
                                      ":2: model.initialize_from: class 0 is "
                                      "\"dog\" in ",
                                      Path("run"), "/model.json and \"cat\"")));
  EXPECT_THAT(message,
              HasSubstr("set data.train.csv.classes to [\"dog\", \"cat\"], or "
                        "start the last layer from the seed"));
  TRIBUTARY_EXPECT_OK(Check(", classes: [\"dog\", \"cat\"]"));
  TRIBUTARY_EXPECT_OK(
      Check("", "  initialize_rules: [{tensors: [0.*], fresh: true}]\n"));
}

TEST_F(ClassOrderTest, OtherClassesAreAnotherTask) {
  WriteRecord({"cat", "dog"});
  TRIBUTARY_EXPECT_OK(Check());
  WriteRecord({"horse", "cat"});
  TRIBUTARY_EXPECT_OK(Check());
  WriteRecord({});
  TRIBUTARY_EXPECT_OK(Check());
  std::filesystem::remove(Path("run/model.json"));
  TRIBUTARY_EXPECT_OK(Check());
}

}  // namespace
}  // namespace tributary
