#include "worker/data/open_data.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/data/data_files.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::DataSpec Spec(const std::string& text) {
  v1::DataSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

std::string IdxText(const std::string& images, const std::string& labels) {
  return "idx { images: '" + images + "' labels: '" + labels + "' ";
}

TrainTest Open(const std::string& spec, TargetKind kind) {
  auto data = OpenData(Spec(spec), kind);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : TrainTest{};
}

std::string ErrorOf(const std::string& spec, TargetKind kind) {
  const auto data = OpenData(Spec(spec), kind);
  EXPECT_FALSE(data.ok());
  return std::string(data.status().message());
}

std::string FashionText(const std::string& more) {
  return "train { " +
         IdxText(Example("fashion-train6000-images-idx3-ubyte.gz"),
                 Example("fashion-train6000-labels-idx1-ubyte.gz")) +
         more + "} } test { " +
         IdxText(Example("fashion-t10k1000-images-idx3-ubyte.gz"),
                 Example("fashion-t10k1000-labels-idx1-ubyte.gz")) +
         "} }";
}

double MeanOf(const Batch& batch) {
  double sum = 0;
  for (size_t i = 0; i < batch.features.size(); ++i) {
    sum += batch.features.data()[i];
  }
  return sum / static_cast<double>(batch.features.size());
}

std::vector<int64_t> AllRows(const Dataset& data) {
  std::vector<int64_t> rows(data.rows());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  return rows;
}

TEST(OpenDataTest, ReadsTheFashionImagesOfTheExamples) {
  const TrainTest data = Open(FashionText(""), TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 6000);
  EXPECT_EQ(data.test->rows(), 1000);
  EXPECT_THAT(data.train->feature_shape(), ElementsAre(28, 28));
  EXPECT_EQ(data.train->num_classes(), 10);
  Batch batch;
  data.train->Gather({0, 1, 2}, &batch);
  // The first labels of Fashion-MNIST: ankle boot, T-shirt, T-shirt.
  EXPECT_THAT(batch.labels, ElementsAre(9, 0, 0));
}

TEST(OpenDataTest, StandardizedImagesShareOneMeanAndTheTestSetTakesIt) {
  const TrainTest data =
      Open(FashionText("normalize { standardize: true }"), TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  Batch batch;
  data.train->Gather(AllRows(*data.train), &batch);
  double square = 0;
  for (size_t i = 0; i < batch.features.size(); ++i) {
    square += double{batch.features.data()[i]} * batch.features.data()[i];
  }
  EXPECT_NEAR(MeanOf(batch), 0, 1e-6);
  EXPECT_NEAR(square / batch.features.size(), 1, 1e-6);
  data.test->Gather(AllRows(*data.test), &batch);
  EXPECT_NEAR(MeanOf(batch), 0, 0.05);
  EXPECT_GT(std::abs(MeanOf(batch)), 1e-4);  // not measured on itself
}

TEST(OpenDataTest, ReadsTheWholeFashionMnistWhereItIsInstalled) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  }
  const TrainTest data =
      Open("train { " +
               IdxText(folder + "train-images-idx3-ubyte.gz",
                       folder + "train-labels-idx1-ubyte.gz") +
               "} } test { " +
               IdxText(folder + "t10k-images-idx3-ubyte.gz",
                       folder + "t10k-labels-idx1-ubyte.gz") +
               "} }",
           TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 60000);
  EXPECT_EQ(data.test->rows(), 10000);
  std::vector<int> counts(10);
  Batch batch;
  data.train->Gather(AllRows(*data.train), &batch);
  for (int64_t label : batch.labels) ++counts.at(label);
  EXPECT_EQ(counts, std::vector<int>(10, 6000));  // balanced by its makers
  // The mean that every tutorial on this data set normalizes with.
  EXPECT_NEAR(MeanOf(batch), 0.2860, 5e-5);
}

TEST(OpenDataTest, TestSamplesOfAnotherShapeAreTold) {
  const std::string labels = WriteFile("labels", Idx({1}, "a"));
  const std::string small = WriteFile("small", Idx({1, 2, 2}, "abcd"));
  const std::string large = WriteFile("large", Idx({1, 2, 3}, "abcdef"));
  EXPECT_EQ(ErrorOf("train { " + IdxText(small, labels) + "} } test { " +
                        IdxText(large, labels) + "} }",
                    TargetKind::kClass),
            large + ": samples are [2, 3], but the training data's are [2, 2]");
}

TEST(OpenDataTest, AMissingFileOrSourceIsTold) {
  EXPECT_THAT(ErrorOf("train { " + IdxText("/nonexistent/x", "y") + "} }",
                      TargetKind::kClass),
              HasSubstr("cannot open /nonexistent/x"));
  EXPECT_THAT(ErrorOf("", TargetKind::kClass), HasSubstr("got none"));
}

TEST(OpenDataTest, WithoutATestSourceThereIsNoTestSet) {
  const std::string labels = WriteFile("labels", Idx({1}, "a"));
  const std::string images = WriteFile("images", Idx({1, 2, 2}, "abcd"));
  const TrainTest data =
      Open("train { " + IdxText(images, labels) + "} }", TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.test, nullptr);
}

}  // namespace
}  // namespace tributary
