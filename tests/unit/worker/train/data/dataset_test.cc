// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/dataset.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Features(const Batch& batch) {
  return {batch.features.data(), batch.features.data() + batch.features.size()};
}

RawData Images() {
  RawData raw;
  raw.name = "images";
  raw.rows = 2;
  raw.feature_shape = {1, 2};
  raw.numeric_width = 2;
  raw.bytes = {0, 255, 51, 102};
  raw.byte_divisor = 255;
  raw.targets.labels = {3, 1};
  return raw;
}

// Two numbers and two one-hot columns of 2 and 3 categories.
RawData Table() {
  RawData raw;
  raw.name = "table";
  raw.rows = 3;
  raw.feature_shape = {7};
  raw.numeric_width = 2;
  raw.numbers = {1, 10, 2, 10, 3, 10};
  raw.code_widths = {2, 3};
  raw.codes = {0, 2, 1, -1, 1, 0};
  raw.targets.kind = TargetKind::kReal;
  raw.targets.width = 2;
  raw.targets.values = {1, 2, 3, 4, 5, 6};
  return raw;
}

NormalizeOptions Standardize() {
  NormalizeOptions options;
  options.standardize = true;
  return options;
}

uint32_t ChecksumOf(const RawData& raw) { return Dataset(raw, {}).checksum(); }

TEST(DatasetTest, ChecksumIsOfTheSamplesNotOfTheirNameOrNormalization) {
  RawData renamed = Images();
  renamed.name = "moved";
  EXPECT_EQ(ChecksumOf(renamed), ChecksumOf(Images()));
  const RawData table = Table();
  const auto standardized = ResolveNormalization(Standardize(), table);
  EXPECT_EQ(Dataset(table, *standardized).checksum(), ChecksumOf(table));

  RawData pixel = Images(), label = Images(), number = Table(), code = Table(),
          value = Table(), shape = Images();
  pixel.bytes[3] ^= 1;
  label.targets.labels[1] = 2;
  shape.feature_shape = {2, 1};
  EXPECT_NE(ChecksumOf(pixel), ChecksumOf(Images()));
  EXPECT_NE(ChecksumOf(label), ChecksumOf(Images()));
  EXPECT_NE(ChecksumOf(shape), ChecksumOf(Images()));
  number.numbers[5] = 11;
  code.codes[0] = 1;
  value.targets.values[0] = 2;
  EXPECT_NE(ChecksumOf(number), ChecksumOf(table));
  EXPECT_NE(ChecksumOf(code), ChecksumOf(table));
  EXPECT_NE(ChecksumOf(value), ChecksumOf(table));
}

Targets TargetsOf(TargetKind kind) {
  Targets targets;
  targets.kind = kind;
  return targets;
}

Normalization Resolve(const NormalizeOptions& options, const RawData& raw) {
  auto normalization = ResolveNormalization(options, raw);
  EXPECT_TRUE(normalization.ok()) << normalization.status();
  return *normalization;
}

TEST(DatasetTest, GathersBytesScaledInTheOrderAsked) {
  const Dataset data(Images(), {});
  Batch batch;
  data.Gather({1, 0, 1}, &batch);
  EXPECT_EQ(batch.rows, 3);
  EXPECT_THAT(Features(batch), ElementsAre(51 / 255.0f, 102 / 255.0f, 0, 1,
                                           51 / 255.0f, 102 / 255.0f));
  EXPECT_THAT(batch.labels, ElementsAre(1, 3, 1));
  EXPECT_TRUE(batch.targets.empty());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.features.data()) % 64, 0u);
}

TEST(DatasetTest, ExpandsCategoriesBehindTheNumbers) {
  const Dataset data(Table(), {});
  EXPECT_THAT(data.feature_shape(), ElementsAre(7));
  Batch batch;
  data.Gather({0, 1}, &batch);
  EXPECT_THAT(Features(batch), ElementsAre(1, 10, 1, 0, 0, 0, 1,  //
                                           2, 10, 0, 1, 0, 0, 0));
  EXPECT_THAT(batch.targets, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(batch.labels.empty());
}

TEST(DatasetTest, EveryOutputHasItsTargetOrTheModelDoesNotFit) {
  const Dataset table(Table(), {});  // two numbers to predict
  EXPECT_TRUE(table.CheckTargets({2}).ok());
  EXPECT_TRUE(table.CheckTargets({2, 1}).ok());
  EXPECT_EQ(table.CheckTargets({1}).message(),
            "table: a sample has 2 numbers to predict, but the model gives "
            "outputs of shape [1] for it, wanted one output for each");
  EXPECT_FALSE(table.CheckTargets({8, 1}).ok());
  const Dataset images(Images(), {});  // a class each
  EXPECT_TRUE(images.CheckTargets({10}).ok());
  EXPECT_EQ(images.CheckTargets({28, 10}).message(),
            "images: a sample has 1 labels, but the model gives outputs of "
            "shape [28, 10] for it, wanted one row of outputs; a flatten or "
            "global_avg_pool makes one");
}

TEST(DatasetTest, AReusedBatchForgetsWhatItHeld) {
  const Dataset data(Table(), {});
  Batch batch;
  data.Gather({0, 1, 2}, &batch);
  const float* memory = batch.features.data();
  data.Gather({1}, &batch);
  EXPECT_EQ(batch.rows, 1);
  EXPECT_EQ(batch.features.data(), memory);
  EXPECT_THAT(Features(batch), ElementsAre(2, 10, 0, 1, 0, 0, 0));
  EXPECT_THAT(batch.targets, ElementsAre(3, 4));
  data.Gather({}, &batch);
  EXPECT_EQ(batch.rows, 0);
}

TEST(DatasetTest, GivenMeansAndDeviationsApplyToNumericFeaturesAlone) {
  const RawData raw = Table();
  const Dataset by_feature(raw, Resolve({{1, 2}, {0.5, 4}}, raw));
  Batch batch;
  by_feature.Gather({1}, &batch);
  EXPECT_THAT(Features(batch), ElementsAre(2, 2, 0, 1, 0, 0, 0));
  const Dataset one_for_all(raw, Resolve({{2}, {4}}, raw));
  one_for_all.Gather({1}, &batch);
  EXPECT_THAT(Features(batch), ElementsAre(0, 2, 0, 1, 0, 0, 0));
  const Dataset only_std(raw, Resolve({{}, {2, 5}}, raw));
  only_std.Gather({1}, &batch);
  EXPECT_THAT(Features(batch), ElementsAre(1, 2, 0, 1, 0, 0, 0));
}

TEST(DatasetTest, NormalizesBytesAsTorchvisionDoes) {
  // ToTensor, then Normalize: float32 (x / 255 - mean) / std.
  const RawData raw = Images();
  Batch batch;
  Dataset(raw, Resolve({{0.5}, {0.25}}, raw)).Gather({0}, &batch);
  EXPECT_THAT(Features(batch), ElementsAre(-2, 2));
  Dataset(raw, Resolve({{0.5, 1}, {0.25, 2}}, raw)).Gather({0}, &batch);
  EXPECT_THAT(Features(batch), ElementsAre(-2, 0));
}

TEST(NormalizationTest, StandardizesTablesByFeatureAndKeepsConstants) {
  // 1, 2, 3: mean 2, population variance 2/3.
  const Normalization result = Resolve(Standardize(), Table());
  EXPECT_THAT(result.mean, ElementsAre(2, 10));
  EXPECT_THAT(result.std, ElementsAre(std::sqrt(2.0f / 3), 1));
}

TEST(NormalizationTest, AConstantIsKnownWhateverItsMeanRoundsTo) {
  RawData raw = Table();
  raw.rows = 1000;
  raw.numbers.clear();
  for (int i = 0; i < raw.rows; ++i) {
    raw.numbers.push_back(0.1f);
    raw.numbers.push_back(i == 7 ? 1e-6f : 0);
  }
  const Normalization result = Resolve(Standardize(), raw);
  EXPECT_EQ(result.std[0], 1);
  // One of 1000 is 1e-6: deviation 1e-6 sqrt(1e-3 (1 - 1e-3)).
  EXPECT_NEAR(result.std[1], 3.1607e-8, 1e-12);
}

TEST(NormalizationTest, BytesAreMeasuredByFeatureInFlatSamples) {
  RawData raw = Images();
  raw.feature_shape = {2};
  // 0 and 0.2; 1 and 0.4.
  const Normalization result = Resolve(Standardize(), raw);
  ASSERT_EQ(result.mean.size(), 2u);
  EXPECT_FLOAT_EQ(result.mean[0], 0.1f);
  EXPECT_FLOAT_EQ(result.mean[1], 0.7f);
  EXPECT_FLOAT_EQ(result.std[0], 0.1f);
  EXPECT_FLOAT_EQ(result.std[1], 0.3f);
  raw.bytes = {7, 7, 7, 7};
  raw.feature_shape = {1, 2};
  EXPECT_THAT(Resolve(Standardize(), raw).std, ElementsAre(1));
}

TEST(NormalizationTest, StandardizesImagesWithOnePair) {
  // 0, 1, 0.2, 0.4: mean 0.4, variance (0.16 + 0.36 + 0.04) / 4 = 0.14.
  const Normalization result = Resolve(Standardize(), Images());
  ASSERT_TRUE(result.one_pair());
  EXPECT_FLOAT_EQ(result.mean[0], 0.4f);
  EXPECT_FLOAT_EQ(result.std[0], std::sqrt(0.14f));
}

TEST(NormalizationTest, WhatDoesNotFitIsTold) {
  const auto message = [](const NormalizeOptions& options, const RawData& raw) {
    return std::string(ResolveNormalization(options, raw).status().message());
  };
  EXPECT_EQ(message({{1, 2, 3}, {}}, Table()),
            "table: normalize.mean has 3 values, wanted one for all or one for "
            "each of the 2 numeric features");
  EXPECT_THAT(message({{}, {0}}, Table()), HasSubstr("std must be positive"));
  EXPECT_THAT(message({{}, {1e-60}}, Table()), HasSubstr("got 1e-60"));
  EXPECT_THAT(message({{1e60}, {}}, Table()), HasSubstr("mean must be finite"));
  EXPECT_THAT(message({{1}, {1}, true}, Table()), HasSubstr("not both"));
  RawData words = Table();
  words.numeric_width = 0;
  words.numbers.clear();
  EXPECT_THAT(message(Standardize(), words),
              HasSubstr("wants numeric features, there are none"));
}

TEST(DatasetTest, AClassThatTheModelCannotSayIsTold) {
  RawData raw = Images();
  EXPECT_TRUE(Dataset(raw, {}).CheckClasses(4).ok());
  EXPECT_EQ(std::string(Dataset(raw, {}).CheckClasses(3).message()),
            "images: sample 0 has class 3, but the model's 3 outputs are for "
            "classes 0 to 2");
  raw.targets.class_names = {"A", "B", "C", "D"};
  EXPECT_THAT(std::string(Dataset(raw, {}).CheckClasses(3).message()),
              HasSubstr("class 3 (\"D\")"));
}

TEST(TargetsTest, EachKindTakesItsValuesAlone) {
  Targets classes = TargetsOf(TargetKind::kClass);
  EXPECT_TRUE(classes.Append(7).ok());
  for (double wrong : {-1.0, 0.5, 3e9, std::nan("")}) {
    EXPECT_FALSE(classes.Append(wrong).ok()) << wrong;
  }
  EXPECT_THAT(classes.labels, ElementsAre(7));
  Targets binary = TargetsOf(TargetKind::kBinary);
  EXPECT_TRUE(binary.Append(1).ok());
  EXPECT_FALSE(binary.Append(2).ok());
  EXPECT_FALSE(binary.Append(std::nan("")).ok());
  Targets real = TargetsOf(TargetKind::kReal);
  EXPECT_TRUE(real.Append(-2.5).ok());
  EXPECT_FALSE(real.Append(1e300).ok());
  EXPECT_THAT(real.values, ElementsAre(-2.5f));
}

}  // namespace
}  // namespace tributary
