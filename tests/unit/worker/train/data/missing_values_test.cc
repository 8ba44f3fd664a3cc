// SPDX-License-Identifier: Apache-2.0
// Missing values of tables: from the job's data to what model.json says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/open_data.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::StatusOr<TrainTest> Open(const std::string& train,
                               const std::string& test,
                               const std::string& missing,
                               const std::string& test_missing) {
  const std::string columns =
      "' header: true delimiter: ',' columns { label: 'y' } "
      "normalize { standardize: true } ";
  v1::DataSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "train { csv { path: '" + WriteFile("train.csv", train) + columns +
          missing + "} } test { csv { path: '" + WriteFile("test.csv", test) +
          columns + test_missing + "} }",
      &spec));
  return OpenData(spec, TargetKind::kClass);
}

// The mean of 1, 9 and 2 is 4. With it the deviation of 1, 9, 4, 2, 4 is that
// of squares 9, 25, 0, 4, 0: sqrt(38 / 5).
TEST(MissingValuesTest, TheTrainingMeanFillsBothSetsBeforeTheyAreStandardized) {
  const std::string mean = "missing { mean: true texts: 'NA' } ";
  const auto data =
      Open("x,y\n1,0\n9,1\nNA,0\n2,1\n,1\n", "x,y\n100,0\n?,1\n", mean, mean);
  TRIBUTARY_ASSERT_OK(data);
  const float deviation = static_cast<float>(std::sqrt(38.0 / 5));
  EXPECT_THAT(NumbersOf(*data->train),
              ElementsAre(-3 / deviation, 5 / deviation, 0, -2 / deviation, 0));
  EXPECT_THAT(NumbersOf(*data->test), ElementsAre(96 / deviation, 0));
  const v1::CsvTable& table = data->preprocessing.csv();
  EXPECT_THAT(table.fill(), ElementsAre(4));
  EXPECT_THAT(table.missing(), ElementsAre("", "?", "NA"));
  EXPECT_FALSE(table.skip_missing());
}

TEST(MissingValuesTest, ATestSetMayTreatThemInItsOwnWay) {
  const auto data = Open("x,y\n1,0\n3,1\n", "x,y\n,0\n3,1\n", "",
                         "missing { median: true } ");
  TRIBUTARY_ASSERT_OK(data);
  // The median of the training data is 2, its mean.
  EXPECT_THAT(NumbersOf(*data->test), ElementsAre(0, 1));
  EXPECT_THAT(data->preprocessing.csv().missing(), IsEmpty());
}

TEST(MissingValuesTest, SkippedRowsAreToldInTheDescription) {
  const std::string skip = "missing { skip: true } ";
  const auto data = Open("x,y\n1,0\n,1\n3,1\n", "x,y\n,0\n3,1\n", skip, skip);
  TRIBUTARY_ASSERT_OK(data);
  EXPECT_EQ(data->train->rows(), 2);
  EXPECT_EQ(data->test->rows(), 1);
  EXPECT_TRUE(data->preprocessing.csv().skip_missing());
  EXPECT_THAT(data->preprocessing.csv().fill(), IsEmpty());
  EXPECT_THAT(data->preprocessing.csv().missing(), ElementsAre("", "?"));
}

}  // namespace
}  // namespace tributary
