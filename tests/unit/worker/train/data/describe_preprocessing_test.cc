// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/describe_preprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/open_data.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

class DescribePreprocessingTest : public testing::TemporaryFolderTest {
 protected:
  v1::Preprocessing Describe(const v1::DataSource& train, TargetKind kind) {
    v1::DataSpec spec;
    *spec.mutable_train() = train;
    const auto data = OpenData(spec, kind);
    EXPECT_TRUE(data.ok()) << data.status();
    return data->preprocessing;
  }
};

TEST_F(DescribePreprocessingTest, ATableHasColumnsCategoriesAndDeviations) {
  v1::DataSource source;
  v1::CsvSource* csv = source.mutable_csv();
  csv->add_path(Write("animals.csv",
                      "mass,animal,colour,colour\n"
                      "1,dog,red,a\n5,cat,blue,b\n"));
  csv->set_header(true);
  csv->set_delimiter(",");
  csv->mutable_columns()->set_label("animal");
  csv->mutable_columns()->add_numeric("mass");
  csv->mutable_columns()->add_categorical("2");
  csv->mutable_columns()->add_ignore("3");
  csv->mutable_normalize()->set_standardize(true);
  const v1::Preprocessing table = Describe(source, TargetKind::kClass);
  EXPECT_EQ(table.source(), "csv");
  EXPECT_THAT(table.feature_shape(), ElementsAre(3));
  EXPECT_EQ(table.target_width(), 1);
  // The mean of 1 and 5, and the deviation of the population.
  EXPECT_THAT(table.numeric().mean(), ElementsAre(3.0f));
  EXPECT_THAT(table.numeric().deviation(), ElementsAre(2.0f));
  EXPECT_EQ(table.numeric().byte_divisor(), 0);
  EXPECT_EQ(table.csv().columns(), 4);
  EXPECT_EQ(table.csv().label().name(), "animal");
  EXPECT_EQ(table.csv().label().index(), 1);
  EXPECT_EQ(table.csv().numeric(0).name(), "mass");
  // The name stands twice in the header, so only the number means the column.
  EXPECT_EQ(table.csv().categorical(0).column().name(), "");
  EXPECT_EQ(table.csv().categorical(0).column().index(), 2);
  EXPECT_THAT(table.csv().categorical(0).categories(),
              ElementsAre("blue", "red"));
  EXPECT_THAT(table.class_names(), ElementsAre("cat", "dog"));
}

TEST_F(DescribePreprocessingTest, AColumnFarFromZeroHasAnOffset) {
  v1::DataSource source;
  v1::CsvSource* csv = source.mutable_csv();
  csv->add_path(
      Write("times.csv", "near,time,animal\n1,1700000001,0\n5,1700000005,1\n"));
  csv->set_header(true);
  csv->set_delimiter(",");
  csv->mutable_columns()->set_label("animal");
  csv->mutable_normalize()->set_standardize(true);
  const v1::Preprocessing table = Describe(source, TargetKind::kClass);
  // Float32 makes 1.7e9 of both times.
  EXPECT_THAT(table.numeric().offset(), ElementsAre(0, 1.7e9));
  EXPECT_THAT(table.numeric().mean(), ElementsAre(3.0f, 3.0f));
  EXPECT_THAT(table.numeric().deviation(), ElementsAre(2.0f, 2.0f));
}

TEST_F(DescribePreprocessingTest, ImagesAreScaledBytes) {
  v1::DataSource source;
  source.mutable_idx()->add_images(
      Write("images", Idx({2, 1, 2}, {0, 10, 20, 30})));
  source.mutable_idx()->add_labels(Write("labels", Idx({2}, {0, 1})));
  source.mutable_idx()->mutable_normalize()->add_mean(0.5);
  const v1::Preprocessing images = Describe(source, TargetKind::kClass);
  EXPECT_EQ(images.source(), "idx");
  EXPECT_THAT(images.feature_shape(), ElementsAre(1, 2));
  EXPECT_EQ(images.numeric().count(), 2);
  EXPECT_EQ(images.numeric().byte_divisor(), 255);
  EXPECT_THAT(images.numeric().mean(), ElementsAre(0.5f));
  EXPECT_THAT(images.numeric().deviation(), ElementsAre(1.0f));
}

TEST_F(DescribePreprocessingTest, ATextHasItsVocabulary) {
  v1::DataSource source;
  source.mutable_text()->add_path(Write("text",
                                        "b\xC3\xA9"
                                        "ab"));
  source.mutable_text()->set_length(2);
  const v1::Preprocessing text = Describe(source, TargetKind::kClass);
  EXPECT_EQ(text.source(), "text");
  EXPECT_FALSE(text.has_numeric());
  EXPECT_EQ(text.text().length(), 2);
  EXPECT_EQ(text.target_width(), 2);
  EXPECT_THAT(text.text().vocabulary(), ElementsAre('a', 'b', 0xE9));
}

}  // namespace
}  // namespace tributary
