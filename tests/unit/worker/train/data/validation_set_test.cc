// SPDX-License-Identifier: Apache-2.0
// The validation set of a job beside its training and test set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status/about_field.h"
#include "google/protobuf/text_format.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/open_data.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

constexpr char kColumns[] =
    "' header: true delimiter: ',' columns { label: 'y' } ";

std::string Csv(const std::string& name, const std::string& content,
                const std::string& more) {
  return "csv { path: '" + WriteFile(name, content) + kColumns + more + "} ";
}

// The last two rows validate, so the mean is that of 1 and 3.
TEST(ValidationSetTest, AFractionIsMeasuredByTheRowsThatTrain) {
  const auto data = OpenData(
      Spec("train { " +
           Csv("train.csv", "x,y\n1,0\n3,1\n,0\n,1\n102,0\n",
               "normalize { mean: 2 std: 1 } missing { mean: true } ") +
           "} validation { fraction: 0.4 } shuffle { none: true }"),
      TargetKind::kClass);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(NumbersOf(*data->train), ElementsAre(-1, 1, 0));
  EXPECT_THAT(NumbersOf(*data->validation), ElementsAre(0, 100));
  EXPECT_THAT(data->preprocessing.csv().fill(), ElementsAre(2));
  EXPECT_EQ(data->evaluated(), data->validation.get());
  EXPECT_EQ(data->test, nullptr);
}

TEST(ValidationSetTest, ASourceTakesWhatTheTrainingDataSay) {
  const std::string standardize = "normalize { standardize: true } ";
  const auto data = OpenData(
      Spec("train { " + Csv("train.csv", "x,y\n1,no\n3,yes\n", standardize) +
           "} validation { source { " +
           Csv("valid.csv", "x,y\n5,yes\n", standardize) + "} } test { " +
           Csv("test.csv", "x,y\n4,no\n", standardize) + "}"),
      TargetKind::kClass);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_THAT(NumbersOf(*data->validation), ElementsAre(3));
  EXPECT_THAT(NumbersOf(*data->test), ElementsAre(2));
  Batch batch;
  data->validation->Gather({0}, &batch);
  EXPECT_THAT(batch.labels, ElementsAre(1));
  EXPECT_EQ(data->evaluated(), data->validation.get());
}

TEST(ValidationSetTest, AnErrorNamesTheFieldThatWasRead) {
  const std::string train = "train { " + Csv("train.csv", "x,y\n1,0\n", "");
  const auto fraction = OpenData(Spec(train + "} validation { fraction: 0.5 }"),
                                 TargetKind::kClass);
  EXPECT_THAT(fraction,
              StatusIs(absl::StatusCode::kInvalidArgument, "1 of 1 rows"));
  EXPECT_EQ(FieldOf(fraction.status()), "data.validation.fraction");
  const auto source = OpenData(Spec(train + "} validation { source { " +
                                    Csv("v.csv", "x,y\nz,0\n", "") + "} }"),
                               TargetKind::kClass);
  EXPECT_THAT(source, StatusIs(absl::StatusCode::kInvalidArgument, "line 2"));
  EXPECT_EQ(FieldOf(source.status()), "data.validation.source.csv");
}

TEST(ValidationSetTest, WithoutOneTheTestSetIsEvaluated) {
  const auto data =
      OpenData(Spec("train { " + Csv("train.csv", "x,y\n1,0\n", "") +
                    "} test { " + Csv("test.csv", "x,y\n4,0\n", "") + "}"),
               TargetKind::kClass);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_EQ(data->validation, nullptr);
  EXPECT_EQ(data->evaluated(), data->test.get());
}

}  // namespace
}  // namespace tributary
