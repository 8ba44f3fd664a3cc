// SPDX-License-Identifier: Apache-2.0
// The check before the start, of arrays and of weights to start from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/files/file_checksum.h"
#include "common/files/safetensors.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/check/check_data.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

class ArrayChecksTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Write("x.npy",
          Npy(NpyDict("<f4", "(3, 2)"), BytesOf<float>({1, 2, 3, 4, 5, 6})));
    Write("y.npy", Npy(NpyDict("<i8", "(3,)"), BytesOf<int64_t>({1, 2, 3})));
  }
  // The check of a job whose labels are in line 7.
  absl::StatusOr<std::string> Check(const std::string& outputs,
                                    const std::string& model = "",
                                    const std::string& loss = "cross_entropy") {
    return CheckDataOfFile(
        Write("job.yaml", "model:\n" + model +
                              "  sequential: [linear: {in: 2, out: " + outputs +
                              "}]\n"
                              "data:\n  train:\n    npy:\n"
                              "      labels: y.npy\n      features: x.npy\n"
                              "  batch_size: 1\n"
                              "training: {steps: 1, loss: " +
                              loss +
                              ", optimizer: {sgd: {learning_rate: 1}}}\n"),
        {});
  }
};

TEST_F(ArrayChecksTest, ALabelOutOfRangeNamesTheFileOfTheLabelsAndItsRow) {
  TRIBUTARY_EXPECT_OK(Check("4"));
  EXPECT_THAT(Check("3"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       Path("y.npy") + ": row 2 has class 3, but the model's 3 "
                                       "outputs are for classes 0 to 2"));
}

TEST_F(ArrayChecksTest, TheRecordHasTheInitialWeightsBesideTheData) {
  const std::vector<float> zeros(8);
  ASSERT_TRUE(WriteSafetensors(Path("weights"),
                               {{"0.weight", {4, 2}}, {"0.bias", {4}}},
                               {zeros.data(), zeros.data()})
                  .ok());
  TRIBUTARY_EXPECT_OK(Check("4", "  initialize_from: weights\n"));
  std::string text;
  TRIBUTARY_EXPECT_OK(CheckDataOfFile(Path("job.yaml"), {}, &text));
  const auto record = nlohmann::json::parse(text);
  EXPECT_EQ(record["train"]["rows"], 3);
  EXPECT_EQ(record["initial_weights"]["checksum"],
            *FileChecksum(Path("weights")));
  TRIBUTARY_EXPECT_OK(Check("4"));
  TRIBUTARY_EXPECT_OK(CheckDataOfFile(Path("job.yaml"), {}, &text));
  EXPECT_FALSE(nlohmann::json::parse(text).contains("initial_weights"));
}

TEST_F(ArrayChecksTest, AWrongFileOfLabelsIsPlacedAtItsField) {
  Write("y.npy", Npy(NpyDict(">i8", "(3,)"), std::string(24, 0)));
  EXPECT_THAT(Check("4"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "job.yaml:6: " + Path("y.npy") + ": offset 128: "));
  Write("x.npy", "age,mass\n1,2\n");
  EXPECT_THAT(Check("4"), StatusIs(absl::StatusCode::kInvalidArgument,
                                   "job.yaml:5: " + Path("x.npy")));
}

TEST_F(ArrayChecksTest, NumbersThatFloat32RoundsAreANote) {
  Write("y.npy",
        Npy(NpyDict("<i8", "(3,)"), BytesOf<int64_t>({16'777'217, 2, 3})));
  const auto note = Check("1", "", "mse");
  TRIBUTARY_ASSERT_OK(note);
  EXPECT_THAT(*note, HasSubstr("job.yaml:3: " + Path("y.npy") +
                               ": float32 rounds these targets by up to 1; "));
}

TEST_F(ArrayChecksTest, AFileThatIsAlsoAMatchOfAPatternIsANote) {
  TRIBUTARY_ASSERT_OK(Check("4"));
  for (const char* file : {"x1.npy", "x2.npy"}) {
    std::filesystem::copy(Path("x.npy"), Path(file));
  }
  const auto note = CheckDataOfFile(
      Path("job.yaml"), {"data.train.npy.features=[x2.npy, \"x?.npy\"]",
                         "data.train.npy.labels=[y.npy, y.npy, y.npy]"});
  TRIBUTARY_ASSERT_OK(note);
  EXPECT_THAT(
      *note,
      HasSubstr("job.yaml:3: data.train.npy.features names " + Path("x2.npy") +
                " more than once, so that these rows count more than "
                "once; if that is not wanted, take the file out of "
                "the list or narrow the pattern"));
  EXPECT_THAT(*note, HasSubstr("labels names " + Path("y.npy") + " more"));
}

TEST_F(ArrayChecksTest, AWarmUpEndsBeforeTheEpochsDo) {
  const auto check = [this](const std::string& warmup) {
    return CheckDataOfFile(
        Path("job.yaml"),
        {"training.steps=null", "training.epochs=4",
         "training.learning_rate_schedule={warmup_cosine: {warmup: " + warmup +
             "}}"});
  };
  TRIBUTARY_ASSERT_OK(Check("4"));
  TRIBUTARY_EXPECT_OK(check("11"));
  EXPECT_THAT(check("12"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "training.learning_rate_schedule.warmup_cosine.warmup "
                       "must be below total, 12, got 12; 3 samples make 12 "
                       "steps"));
}

TEST_F(ArrayChecksTest, WeightsToStartFromAreFinite) {
  const std::string from = "  initialize_from: w.safetensors\n";
  const auto write = [&](float bias) {
    const std::vector<float> weight(8), biases = {0, 0, 0, bias};
    TRIBUTARY_EXPECT_OK(WriteSafetensors(
        Path("w.safetensors"), {{"0.weight", {4, 2}}, {"0.bias", {4}}},
        {weight.data(), biases.data()}));
  };
  write(1);
  TRIBUTARY_EXPECT_OK(Check("4", from));
  write(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(
      Check("4", from),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "job.yaml:2: model.initialize_from: " + Path("w.safetensors") +
                   ": tensor \"0.bias\" has nan at element 3, wanted "
                   "finite numbers"));
}

}  // namespace
}  // namespace tributary
