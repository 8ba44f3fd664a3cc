// SPDX-License-Identifier: Apache-2.0
// Columns whose values are far from 0 keep their differences.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/open_data.h"

namespace tributary {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;

// 0 to 7 have the mean 3.5 and the variance 63 / 12.
std::vector<float> StandardizedEight() {
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) {
    values.push_back(static_cast<float>((i - 3.5) / std::sqrt(5.25)));
  }
  return values;
}

template <typename T>
std::string Eight(const char* type, T first, T step) {
  std::vector<T> values;
  for (int i = 0; i < 8; ++i)
    values.push_back(first + static_cast<T>(i) * step);
  return Npy(NpyDict(type, "(8, 1)"), BytesOf(values));
}

std::string EightZeros() {
  return Npy(NpyDict("<f4", "(8,)"), BytesOf(std::vector<float>(8)));
}

std::string FarNpy(const std::string& features, const std::string& more) {
  return "npy { features: '" + WriteFile("x.npy", features) + "' labels: '" +
         WriteFile("y.npy", EightZeros()) + "' " + more + " }";
}

// A table of the columns t and y, where y is 0.
std::string FarTable(const std::vector<std::string>& values) {
  std::string text = "t,y\n";
  for (const std::string& value : values) text += value + ",0\n";
  return text;
}

std::string FarCsv(const std::string& file, const std::string& table,
                   const std::string& more) {
  return "csv { path: '" + WriteFile(file, table) +
         "' header: true delimiter: ',' columns { label: 'y' numeric: 't' } " +
         more + " }";
}

constexpr char kStandardize[] = "normalize { standardize: true }";

std::vector<std::string> SecondsFrom(int64_t first) {
  std::vector<std::string> values;
  for (int i = 0; i < 8; ++i) values.push_back(absl::StrCat(first + i));
  return values;
}

TrainTest OpenFar(const std::string& spec) {
  auto data = OpenData(Spec(spec), TargetKind::kReal);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : TrainTest{};
}

std::vector<float> FarFeatures(const Dataset& set) {
  std::vector<int64_t> rows(set.rows());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  Batch batch;
  TRIBUTARY_EXPECT_OK(set.Fetch(rows, &batch));
  return {batch.features.data(), batch.features.data() + batch.features.size()};
}

// The features of a training source, which are the same from disk.
std::vector<float> FeaturesOf(const std::string& source) {
  const TrainTest memory = OpenFar("train { " + source + " }");
  const TrainTest disk =
      OpenFar("train { " + source + " } stream { buffer_bytes: 1048576 }");
  if (memory.train == nullptr || disk.train == nullptr) return {};
  EXPECT_EQ(disk.preprocessing.SerializeAsString(),
            memory.preprocessing.SerializeAsString());
  EXPECT_EQ(disk.train->checksum(), memory.train->checksum());
  EXPECT_EQ(disk.warnings, memory.warnings);
  std::vector<float> features = FarFeatures(*memory.train);
  EXPECT_EQ(FarFeatures(*disk.train), features);
  return features;
}

void ExpectStandardized(const std::string& source) {
  EXPECT_THAT(FeaturesOf(source),
              Pointwise(FloatNear(5e-6f), StandardizedEight()))
      << source;
}

TEST(FarFromZeroTest, ArraysOfEveryTypeKeepTheirDifferences) {
  for (const std::string& array :
       {Eight<double>("<f8", 1.7e9, 1), Eight<double>("<f8", -1.7e9, 1),
        Eight<double>("<f8", 48.1371, 1e-7), Eight<double>("<f8", 1e15, 1),
        Eight<int64_t>("<i8", 1'700'000'000, 1),
        Eight<int64_t>("<i8", 1'700'000'000'000'000'000, 1'000'000'000),
        Eight<uint64_t>("<u8", 1'700'000'000, 60),
        Eight<int32_t>("<i4", 123'456'789, 1),
        Eight<uint32_t>("<u4", 4'000'000'000, 1)}) {
    ExpectStandardized(FarNpy(array, kStandardize));
  }
}

TEST(FarFromZeroTest, TablesKeepTheirDifferences) {
  for (int64_t first : {1'700'000'000L, 28'333'333L, 123'456'789L, 16'777'000L,
                        -1'700'000'000L, 1'700'000'000'000L}) {
    ExpectStandardized(
        FarCsv("t.csv", FarTable(SecondsFrom(first)), kStandardize));
  }
}

TEST(FarFromZeroTest, ColumnsThatFloat32HoldsAreReadAsTheyAre) {
  const TrainTest data = OpenFar(
      "train { " + FarCsv("t.csv", FarTable(SecondsFrom(2020)), kStandardize) +
      " }");
  ASSERT_NE(data.train, nullptr);
  EXPECT_THAT(data.preprocessing.numeric().offset(), IsEmpty());
  EXPECT_THAT(data.preprocessing.numeric().mean(), ElementsAre(2023.5f));
  const TrainTest decimals = OpenFar(
      "train { " +
      FarCsv("t.csv", FarTable({"5.1", "4.9", "4.7"}), kStandardize) + " }");
  ASSERT_NE(decimals.train, nullptr);
  EXPECT_THAT(decimals.preprocessing.numeric().offset(), IsEmpty());
}

TEST(FarFromZeroTest, AGivenMeanIsTakenOffBeforeRounding) {
  // The deviation 0.5 makes (x - mean) / 0.5 = 2 (i - 3).
  const std::string given = "normalize { mean: 1700000003 std: 0.5 }";
  EXPECT_THAT(
      FeaturesOf(FarCsv("t.csv", FarTable(SecondsFrom(1'700'000'000)), given)),
      ElementsAre(-6, -4, -2, 0, 2, 4, 6, 8));
  EXPECT_THAT(
      FeaturesOf(FarNpy(Eight<int64_t>("<i8", 1'700'000'000, 1), given)),
      ElementsAre(-6, -4, -2, 0, 2, 4, 6, 8));
}

TEST(FarFromZeroTest, ImagesOfNumbersHaveOneOffset) {
  std::vector<double> values;
  for (int i = 0; i < 8; ++i) values.push_back(1.7e9 + i);
  std::vector<float> zeros(2);
  const std::string source =
      "npy { features: '" +
      WriteFile("x.npy", Npy(NpyDict("<f8", "(2, 2, 2)"), BytesOf(values))) +
      "' labels: '" +
      WriteFile("y.npy", Npy(NpyDict("<f4", "(2,)"), BytesOf(zeros))) + "' " +
      kStandardize + " }";
  ExpectStandardized(source);
}

TEST(FarFromZeroTest, TestAndValidationRowsTakeTheTrainingsOffset) {
  const std::string train =
      FarCsv("t.csv", FarTable(SecondsFrom(1'700'000'000)), kStandardize);
  const std::string later =
      FarCsv("later.csv", FarTable(SecondsFrom(1'700'000'008)), kStandardize);
  const TrainTest data = OpenFar("train { " + train + " } test { " + later +
                                 " } validation { source { " + later + " } }");
  ASSERT_NE(data.test, nullptr);
  // Row i of both is 8 rows after row i of the training data.
  const auto wanted = static_cast<float>((8 - 3.5) / std::sqrt(5.25));
  EXPECT_NEAR(FarFeatures(*data.test)[0], wanted, 1e-6);
  EXPECT_NEAR(FarFeatures(*data.validation)[0], wanted, 1e-6);
}

TEST(FarFromZeroTest, AFractionForValidationIsTheSameRows) {
  const std::string source =
      FarCsv("t.csv", FarTable(SecondsFrom(1'700'000'000)), kStandardize);
  const TrainTest data = OpenFar("train { " + source +
                                 " } validation { fraction: 0.25 } "
                                 "shuffle { none: true }");
  ASSERT_NE(data.validation, nullptr);
  // 0 to 5 train: mean 2.5, variance 35 / 12. 6 and 7 are the validation rows.
  const auto deviation = static_cast<float>(std::sqrt(35 / 12.0));
  EXPECT_THAT(FarFeatures(*data.validation),
              ElementsAre(FloatNear(3.5f / deviation, 1e-6f),
                          FloatNear(4.5f / deviation, 1e-6f)));
}

TEST(FarFromZeroTest, MissingValuesAreFilledBesideTheirNeighbours) {
  // Without the missing one the values are 0, 1, 2, 4, 8 above the first: their
  // mean is 3 and their median 2. Standardized with it, 0 becomes
  // (0 - mean) / deviation of six values.
  for (const auto& [rule, fill] :
       {std::pair<const char*, double>{"mean", 3}, {"median", 2}}) {
    std::vector<std::string> values;
    for (int i : {0, 1, 2, 4, 8})
      values.push_back(absl::StrCat(1700000000 + i));
    values.push_back("");
    const std::vector<double> all = {0, 1, 2, 4, 8, fill};
    double mean = 0, square = 0;
    for (double x : all) mean += x / 6;
    for (double x : all) square += (x - mean) * (x - mean) / 6;
    const std::string missing = absl::StrCat(" missing { ", rule, ": true }");
    std::vector<float> wanted;
    for (double x : all) {
      wanted.push_back(static_cast<float>((x - mean) / std::sqrt(square)));
    }
    const std::string source =
        FarCsv("t.csv", FarTable(values), kStandardize + missing);
    EXPECT_THAT(FeaturesOf(source), Pointwise(FloatNear(1e-6f), wanted));
    const TrainTest data = OpenFar("train { " + source + " }");
    ASSERT_NE(data.train, nullptr);
    EXPECT_THAT(data.preprocessing.csv().fill(),
                ElementsAre(1700000000 + fill));
  }
}

TEST(FarFromZeroTest, ASetOfItsOwnRulesIsReadByThem) {
  const std::string seconds = FarTable(SecondsFrom(1'700'000'000));
  const TrainTest data =
      OpenFar("train { " + FarCsv("t.csv", seconds, kStandardize) +
              " } test { " + FarCsv("test.csv", seconds, "") + " }");
  ASSERT_NE(data.test, nullptr);
  EXPECT_EQ(FarFeatures(*data.test)[0], 1.7e9f);
}

std::vector<std::string> WarningsOf(const std::string& source) {
  FeaturesOf(source);  // the same from disk
  return OpenFar("train { " + source + " }").warnings;
}

TEST(FarFromZeroTest, ColumnsThatCannotKeepThemAreNamed) {
  const std::vector<std::string> seconds = SecondsFrom(1'700'000'000);
  EXPECT_THAT(WarningsOf(FarCsv("t.csv", FarTable(seconds), "")),
              ElementsAre(HasSubstr(
                  "t.csv: column 0 (\"t\"): float32 rounds these numbers, so "
                  "that different ones may become equal; `normalize: "
                  "standardize` subtracts the mean before the rounding")));
  EXPECT_THAT(WarningsOf(FarNpy(Eight<int64_t>("<i8", 1'700'000'000, 1), "")),
              ElementsAre(HasSubstr("x.npy: feature 0: float32 rounds")));
  // Float64 holds whole numbers up to 2^53.
  EXPECT_THAT(
      WarningsOf(FarNpy(Eight<int64_t>("<i8", 1'700'000'000'000'000'000, 1),
                        kStandardize)),
      ElementsAre(HasSubstr("x.npy: feature 0: float64 rounds")));
  EXPECT_THAT(WarningsOf(FarCsv("t.csv", FarTable({"0.1", "0.7", "2.3"}), "")),
              IsEmpty());
  EXPECT_THAT(WarningsOf(FarCsv("t.csv", FarTable(seconds), kStandardize)),
              IsEmpty());
}

// Float32 rounds numbers below 7e-46 to 0, and has few below 1e-40.
TEST(FarFromZeroTest, DifferencesThatFloat32CannotHoldAreRefused) {
  const auto refused = [](const std::string& source) {
    for (const char* stream : {"", " stream { buffer_bytes: 1048576 }"}) {
      EXPECT_THAT(
          OpenData(Spec("train { " + source + " }" + stream),
                   TargetKind::kReal),
          testing::StatusIs(
              absl::StatusCode::kInvalidArgument,
              "standardize cannot divide numeric feature 0 by its deviation"));
    }
  };
  for (const std::vector<std::string>& values :
       {std::vector<std::string>{"1e-46", "2e-46", "3e-46", "4e-46"},
        {"0", "1e-46"},
        {"1e-300", "2e-300"},
        {"1e-400", "2e-400"},
        {"0", "-1e-400"},
        {"0", "0." + std::string(400, '0') + "1"},
        {"3e-44", "5e-44"}}) {
    refused(FarCsv("t.csv", FarTable(values), kStandardize));
    EXPECT_THAT(
        WarningsOf(FarCsv("t.csv", FarTable(values), "")),
        ElementsAre(HasSubstr("t.csv: column 0 (\"t\"): float32 rounds these "
                              "numbers to 0 or to a few others, because they "
                              "are so small; multiply them by a constant")));
  }
  refused(FarNpy(Eight<double>("<f8", 1e-46, 1e-46), kStandardize));
  // Constant columns, and a column with greater differences.
  for (const std::vector<std::string>& values :
       {std::vector<std::string>{"1e-46", "1e-46"},
        {"0.1", "0.1"},
        {"1e-46", "1"},
        {"1e-38", "2e-38"}}) {
    TRIBUTARY_EXPECT_OK(
        OpenData(Spec("train { " +
                      FarCsv("t.csv", FarTable(values), kStandardize) + " }"),
                 TargetKind::kReal));
  }
  EXPECT_THAT(WarningsOf(FarCsv("t.csv", "t,y\n1,1e-46\n2,2e-46\n", "")),
              ElementsAre(HasSubstr("; multiply them by a constant")));
  EXPECT_THAT(WarningsOf(FarCsv("t.csv", "t,y\n1,1e-400\n2,2e-400\n", "")),
              ElementsAre(HasSubstr("; multiply them by a constant")));
  EXPECT_THAT(WarningsOf(FarCsv("t.csv", FarTable({"0e-400", "-0.0"}), "")),
              IsEmpty());
}

// Float64, which all numbers become first, rounds them to multiples of 256.
TEST(FarFromZeroTest, IntegersBeyondFloat64AreNamed) {
  constexpr int64_t kFar = int64_t{1} << 60;
  const auto lost = [](const std::string& where) {
    return ElementsAre(HasSubstr(
        where +
        ", so that different ones may become equal; subtract a constant from "
        "them in the file"));
  };
  const auto of_feature =
      lost("x.npy: feature 0: float64 rounds these numbers");
  for (const char* more : {"", kStandardize}) {
    for (const std::string& array :
         {Eight<int64_t>("<i8", kFar, 1), Eight<int64_t>("<i8", -kFar, -1),
          Eight<uint64_t>("<u8", uint64_t{1} << 63, 1)}) {
      EXPECT_THAT(WarningsOf(FarNpy(array, more)), of_feature);
    }
  }
  EXPECT_THAT(WarningsOf(FarNpy(Eight<int64_t>("<i8", 0, kFar / 8), "")),
              IsEmpty());
  EXPECT_THAT(
      WarningsOf("npy { features: '" +
                 WriteFile("x.npy", Eight<float>("<f4", 0, 1)) + "' labels: '" +
                 WriteFile("far.npy", Eight<int64_t>("<i8", kFar, 1)) + "' }"),
      lost("far.npy: float64 rounds these targets"));
}

TEST(FarFromZeroTest, IntegersOfTablesBeyondFloat64AreNamed) {
  const auto of_feature =
      ElementsAre(HasSubstr("t.csv: column 0 (\"t\"): float64 rounds these "
                            "numbers, so that different ones may become "
                            "equal; subtract a constant from them"));
  for (const char* number :
       {"9007199254740993", "-9007199254740993", " +9007199254740993.0",
        "009007199254740993.", "1700000000000000001",
        "90071992547409930000000000000001"}) {
    for (const char* more : {"", kStandardize}) {
      EXPECT_THAT(WarningsOf(FarCsv(
                      "t.csv", FarTable({number, "9007199254740992"}), more)),
                  of_feature)
          << number;
    }
    EXPECT_THAT(
        WarningsOf(FarCsv("t.csv", absl::StrCat("t,y\n1,", number, "\n"), "")),
        ElementsAre(HasSubstr("t.csv: column 1 (\"y\"): float64 rounds these "
                              "targets")))
        << number;
  }
  for (const char* number :
       {"9007199254740991", "9007199254740992.00", "9007199254740994",
        "0018014398509481984", "1180591620717411303424", "1e16", "1E23"}) {
    EXPECT_THAT(WarningsOf(FarCsv("t.csv", FarTable({number}), "")),
                Not(Contains(HasSubstr("float64"))))
        << number;
  }
}

TEST(FarFromZeroTest, TargetsThatCannotKeepThemAreNamed) {
  EXPECT_THAT(
      WarningsOf(FarCsv("t.csv", "t,y\n1,1700000000\n2,1700000001\n", "")),
      ElementsAre(HasSubstr("t.csv: column 1 (\"y\"): float32 rounds these "
                            "targets by up to 1; ")));
  const std::string labels = WriteFile(
      "far.npy",
      Npy(NpyDict("<f8", "(8,)"), BytesOf(std::vector<double>(8, 1e8 + 1))));
  EXPECT_THAT(WarningsOf("npy { features: '" +
                         WriteFile("x.npy", Eight<float>("<f4", 0, 1)) +
                         "' labels: '" + labels + "' }"),
              ElementsAre(HasSubstr("far.npy: float32 rounds these targets")));
}

}  // namespace
}  // namespace tributary
