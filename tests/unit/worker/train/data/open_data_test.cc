// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/open_data.h"

#include <filesystem>
#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
         more + "} }";
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

void ExpectClasses(const Dataset& data, int64_t classes) {
  EXPECT_TRUE(data.CheckClasses(classes).ok());
  EXPECT_FALSE(data.CheckClasses(classes - 1).ok());
}

TEST(OpenDataTest, ReadsTheFashionImagesOfTheExamples) {
  const TrainTest data = Open(FashionText(""), TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 6000);
  EXPECT_EQ(data.test->rows(), 1000);
  EXPECT_THAT(data.train->feature_shape(), ElementsAre(28, 28));
  ExpectClasses(*data.train, 10);
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

std::string CsvText(const std::string& path, const std::string& more,
                    const std::string& delimiter = ",") {
  return "csv { path: '" + path + "' delimiter: '" + delimiter + "' " + more +
         "} ";
}

constexpr char kHeader[] = "header: true ";

TEST(OpenDataTest, ReadsTheDigitsOfTheExamples) {
  const std::string path = Example("digits.csv.gz");
  const std::string columns = "header: false columns { label: '64' } ";
  const TrainTest data =
      Open("train { " + CsvText(path, columns + "rows: 1500 ") + "} test { " +
               CsvText(path, columns + "first_row: 1500 ") + "}",
           TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 1500);
  EXPECT_EQ(data.test->rows(), 297);
  EXPECT_THAT(data.train->feature_shape(), ElementsAre(64));
  ExpectClasses(*data.train, 10);
  Batch batch;
  data.train->Gather({0, 1}, &batch);
  EXPECT_THAT(batch.labels, ElementsAre(0, 1));
  EXPECT_THAT(
      std::vector<float>(batch.features.data(), batch.features.data() + 8),
      ElementsAre(0, 0, 5, 13, 9, 1, 0, 0));
}

TEST(OpenDataTest, ReadsTheLettersOfTheExamples) {
  const TrainTest data =
      Open("train { " +
               CsvText(Example("letter-recognition.data.gz"),
                       "header: false columns { label: '0' } ") +
               "}",
           TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 20000);
  EXPECT_THAT(data.train->feature_shape(), ElementsAre(16));
  ExpectClasses(*data.train, 26);
  EXPECT_EQ(data.train->class_names().front(), "A");
  Batch batch;
  data.train->Gather({0, 1, 2}, &batch);
  EXPECT_THAT(batch.labels, ElementsAre('T' - 'A', 'I' - 'A', 'D' - 'A'));
}

// 6 numeric and 8 categorical columns.
std::string AdultText(const std::string& path) {
  std::string columns = std::string(kHeader) + "columns { label: 'label' ";
  for (const char* name : {"age", "fnlwgt", "education_num", "capital_gain",
                           "capital_loss", "hours_per_week"}) {
    columns += "numeric: '" + std::string(name) + "' ";
  }
  for (const char* name :
       {"workclass", "education", "marital_status", "occupation",
        "relationship", "race", "sex", "native_country"}) {
    columns += "categorical: '" + std::string(name) + "' ";
  }
  return CsvText(path, columns + "} normalize { standardize: true } ");
}

TEST(OpenDataTest, ReadsAdultWithItsCategoriesStandardized) {
  const TrainTest data =
      Open("train { " + AdultText(Example("adult-train.csv.gz")) + "} test { " +
               AdultText(Example("adult-test.csv.gz")) + "}",
           TargetKind::kBinary);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 32561);
  EXPECT_EQ(data.test->rows(), 16281);
  // 9 + 16 + 7 + 15 + 6 + 5 + 2 + 42 categories, "?" among them (adult.names).
  EXPECT_THAT(data.train->feature_shape(), ElementsAre(6 + 102));
  EXPECT_THAT(data.warnings, ::testing::IsEmpty());
  Batch batch;
  data.train->Gather(AllRows(*data.train), &batch);
  double positive = 0;
  for (float target : batch.targets) positive += target;
  EXPECT_EQ(positive, 7841);  // adult.names
  for (int64_t row = 0; row < batch.rows; ++row) {
    const float* features = batch.features.data() + row * 108;
    ASSERT_EQ(std::accumulate(features + 6, features + 108, 0.0f), 8) << row;
  }
  // Row 0 is 39 years old; the column's mean is 38.5816, its deviation
  // over n 13.6402.
  EXPECT_NEAR(batch.features.data()[0], (39 - 38.5816) / 13.6402, 1e-4);
}

TEST(OpenDataTest, CategoriesUnknownInTrainingAreReported) {
  const std::string columns =
      std::string(kHeader) +
      "columns { label: 'y' categorical: 'c' numeric: 'x' } ";
  const std::string train = WriteFile("train.csv", "x,c,y\n1,a,0\n3,b,1\n");
  const std::string test = WriteFile("test.tsv", "x\tc\ty\n5\tz\t1\n");
  const TrainTest data =
      Open("train { " + CsvText(train, columns) + "} test { " +
               CsvText(test, columns, "\\t") + "}",
           TargetKind::kClass);
  ASSERT_NE(data.test, nullptr);
  EXPECT_THAT(data.warnings,
              ElementsAre(HasSubstr("test.tsv: column 1 (\"c\"): "
                                    "1 rows have a category")));
  Batch batch;
  data.test->Gather({0}, &batch);
  EXPECT_THAT(
      std::vector<float>(batch.features.data(), batch.features.data() + 3),
      ElementsAre(5, 0, 0));
}

TEST(OpenDataTest, ATestSourceMayNormalizeInItsOwnWay) {
  const std::string columns = std::string(kHeader) + "columns { label: 'y' } ";
  const std::string path = WriteFile("data.csv", "x,y\n1,0\n3,1\n");
  const TrainTest data =
      Open("train { " + CsvText(path, columns + "normalize { mean: 1 } ") +
               "} test { " + CsvText(path, columns + "normalize { } ") + "}",
           TargetKind::kClass);
  ASSERT_NE(data.test, nullptr);
  Batch batch;
  data.test->Gather({1}, &batch);
  EXPECT_EQ(batch.features.data()[0], 3);
}

TEST(OpenDataTest, StandardizeMeasuresTheTrainingDataForTheTestSetToo) {
  const std::string columns = std::string(kHeader) + "columns { label: 'y' } ";
  // Mean 2, deviation 1; the test's own would be 5 and 0.
  const std::string train = WriteFile("train.csv", "x,y\n1,0\n3,1\n");
  const std::string test = WriteFile("test.csv", "x,y\n5,0\n5,1\n");
  const TrainTest data = Open(
      "train { " + CsvText(train, columns) + "} test { " +
          CsvText(test, columns + "normalize { standardize: true } ") + "}",
      TargetKind::kClass);
  ASSERT_NE(data.test, nullptr);
  Batch batch;
  data.test->Gather({0}, &batch);
  EXPECT_EQ(batch.features.data()[0], 3);
}

TEST(OpenDataTest, ADelimiterIsOneCharacterThatCanDelimit) {
  const std::string path = WriteFile("data.csv", "x;y\n1;0\n");
  const std::string columns = std::string(kHeader) + "columns { label: 'y' } ";
  EXPECT_NE(
      Open("train { " + CsvText(path, columns, ";") + "}", TargetKind::kClass)
          .train,
      nullptr);
  for (const std::string wrong : {"", ";;", "\\\"", "\\n"}) {
    EXPECT_THAT(ErrorOf("train { " + CsvText(path, columns, wrong) + "}",
                        TargetKind::kClass),
                HasSubstr("wanted one character"));
  }
}

TEST(OpenDataTest, ReadsNpySources) {
  const std::string features = WriteFile(
      "x.npy",
      Npy(NpyDict("<f4", "(2, 3)"), BytesOf<float>({1, 2, 3, 4, 5, 6})));
  const std::string labels = WriteFile(
      "y.npy",
      Npy(NpyDict("<f4", "(2, 2)"), BytesOf<float>({.1f, .2f, .3f, .4f})));
  const TrainTest data =
      Open("train { npy { features: '" + features + "' labels: '" + labels +
               "' first_row: 1 normalize { std: 2 } } }",
           TargetKind::kReal);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->target_width(), 2);
  Batch batch;
  data.train->Gather({0}, &batch);
  EXPECT_THAT(
      std::vector<float>(batch.features.data(), batch.features.data() + 3),
      ElementsAre(2, 2.5, 3));
  EXPECT_THAT(batch.targets, ElementsAre(.3f, .4f));
}

TEST(OpenDataTest, ReadsSyntheticSourcesAndTellsWhatIsMissing) {
  const TrainTest data = Open(
      "train { synthetic { kind: CTR rows: 100 normalize { standardize: true }"
      "} } test { synthetic { kind: CTR rows: 50 first_row: 1000000000 } }",
      TargetKind::kBinary);
  ASSERT_NE(data.train, nullptr);
  EXPECT_EQ(data.train->rows(), 100);
  EXPECT_EQ(data.test->rows(), 50);
  EXPECT_THAT(data.test->feature_shape(), ElementsAre(21));
  EXPECT_THAT(
      ErrorOf("train { npy { features: '/nonexistent/x.npy' labels: 'y' } }",
              TargetKind::kClass),
      HasSubstr("cannot open /nonexistent/x.npy"));
  EXPECT_THAT(ErrorOf("train { synthetic { rows: 5 } }", TargetKind::kClass),
              HasSubstr("synthetic: wanted the kind ctr, linear"));
}

TEST(OpenDataTest, MarkovTextIsTwoOneHotTokens) {
  const TrainTest data =
      Open("train { synthetic { kind: MARKOV_TEXT rows: 10 seed: 5 } }",
           TargetKind::kClass);
  ASSERT_NE(data.train, nullptr);
  Batch batch;
  data.train->Gather({3}, &batch);  // tokens 1, 3, 12, 0: 3, 12 -> 0
  std::vector<float> wanted(32);
  wanted[3] = wanted[16 + 12] = 1;
  EXPECT_EQ(
      std::vector<float>(batch.features.data(), batch.features.data() + 32),
      wanted);
  EXPECT_THAT(batch.labels, ElementsAre(0));
}

std::string Uint8Npy(int rows, const std::string& payload) {
  return Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                 std::to_string(rows) + ", 2), }",
             payload);
}

std::string LabelsNpy(const std::string& payload) {
  return Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                 std::to_string(payload.size()) + ",), }",
             payload);
}

TEST(OpenDataTest, RowsOfSeveralPairsOfFilesFollowOneAnother) {
  const std::string x1 = WriteFile("x1.npy", Uint8Npy(2, {0, 1, 2, 3}));
  const std::string x2 = WriteFile("x2.npy", Uint8Npy(3, {4, 5, 6, 7, 8, 9}));
  const std::string y1 = WriteFile("y1.npy", LabelsNpy({0, 1}));
  const std::string y2 = WriteFile("y2.npy", LabelsNpy({2, 3, 4}));
  const std::string files = "train { npy { features: '" + x1 + "' features: '" +
                            x2 + "' labels: '" + y1 + "' labels: '" + y2 + "' ";
  Batch batch;
  TrainTest data = Open(files + "} }", TargetKind::kClass);
  ASSERT_EQ(data.train->rows(), 5);
  data.train->Gather({1, 2, 4}, &batch);
  EXPECT_THAT(
      std::vector<float>(batch.features.data(), batch.features.data() + 6),
      ElementsAre(2, 3, 4, 5, 8, 9));
  EXPECT_THAT(batch.labels, ElementsAre(1, 2, 4));

  data = Open(files + "first_row: 1 rows: 3 } }", TargetKind::kClass);
  ASSERT_EQ(data.train->rows(), 3);
  data.train->Gather({0, 2}, &batch);
  EXPECT_THAT(batch.labels, ElementsAre(1, 3));

  EXPECT_THAT(
      ErrorOf("train { npy { features: '" + x1 + "' features: '" + x2 +
                  "' labels: '" + y1 + "' } }",
              TargetKind::kClass),
      HasSubstr("wanted one file of labels for each of the 2 files, got 1"));
  const std::string wide =
      WriteFile("x3.npy", Npy("{'descr': '|u1', 'fortran_order': False, "
                              "'shape': (1, 3), }",
                              {1, 2, 3}));
  const std::string y3 = WriteFile("y3.npy", LabelsNpy({0}));
  EXPECT_THAT(
      ErrorOf("train { npy { features: '" + x1 + "' features: '" + wide +
                  "' labels: '" + y1 + "' labels: '" + y3 + "' } }",
              TargetKind::kClass),
      HasSubstr("rows are [3], but those of " + x1 + " are [2]"));
}

}  // namespace
}  // namespace tributary
