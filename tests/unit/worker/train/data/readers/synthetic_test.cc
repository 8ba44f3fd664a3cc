// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/synthetic.h"
#include "tests/testing/paths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "worker/train/data/readers/counter_random.h"
#include "worker/train/data/readers/synthetic_models.h"

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using SyntheticKind = SyntheticOptions::Kind;

// Made by another implementation of the same text (NumPy, float64).
const json& Vectors() {
  static const json vectors = [] {
    std::ifstream file(
        testing::SourceFile("tests/golden/synthetic_vectors.json"));
    return json::parse(file);
  }();
  return vectors;
}

void ExpectClose(double got, double wanted) {
  EXPECT_NEAR(got, wanted, 1e-13 * std::max(1.0, std::abs(wanted)));
}

TEST(CounterRandomTest, AgreesWithTheVectors) {
  for (const json& v : Vectors()["hash"]) {
    const uint64_t seed = v["seed"], a = v["a"], b = v["b"];
    EXPECT_EQ(std::to_string(HashBits(seed, a, b)), v["h"]);
    EXPECT_EQ(UniformAt(seed, a, b), v["uni"].get<double>());
    ExpectClose(NormalAt(seed, a, b), v["nrm"]);
  }
}

TEST(ClickModelTest, AgreesWithTheVectors) {
  const json& v = Vectors()["ctr_seed11_rows0_7"];
  const ClickModel model;
  for (int i = 0; i < 8; ++i) {
    const ClickModel::Row row = model.At(11, i);
    for (int d = 0; d < ClickModel::kDense; ++d) {
      ExpectClose(row.dense[d], v["dense"][i][d]);
    }
    for (int j = 0; j < ClickModel::kTables; ++j) {
      EXPECT_EQ(row.ids[j], v["ids"][i][j].get<int>());
    }
    ExpectClose(row.probability, v["p"][i]);
    EXPECT_EQ(row.click, v["y"][i].get<int>() == 1);
  }
}

TEST(ClickModelTest, ReachesTheOptimumOfTheVectorsOnAHundredThousandTestRows) {
  const json& v = Vectors()["ctr_seed11_rows_1e9_100k"];
  constexpr int kRows = 100000;
  const ClickModel model;
  std::vector<double> p(kRows);
  std::vector<int64_t> id_sums(ClickModel::kTables);
  int clicks = 0;
  double log_loss = 0;
  for (int i = 0; i < kRows; ++i) {
    const ClickModel::Row row = model.At(11, 1'000'000'000 + i);
    p[i] = row.probability;
    clicks += row.click;
    for (int j = 0; j < ClickModel::kTables; ++j) id_sums[j] += row.ids[j];
    log_loss -= p[i] * std::log(p[i]) + (1 - p[i]) * std::log(1 - p[i]);
  }
  EXPECT_EQ(clicks, v["sum_y"].get<int>());
  EXPECT_EQ(id_sums, v["sum_ids"].get<std::vector<int64_t>>());
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  EXPECT_NEAR(sum / kRows, v["mean_p"], 1e-12);
  EXPECT_NEAR(log_loss / kRows, v["bayes_logloss"], 1e-12);
  // Expected AUC: pairs (higher clicks, lower does not) over all mixed pairs.
  std::sort(p.begin(), p.end());
  double below = 0, ordered = 0;
  for (double q : p) {
    ordered += q * below;
    below += 1 - q;
  }
  double mixed = 0;
  for (double q : p) mixed += q * (below - (1 - q));
  EXPECT_NEAR(ordered / mixed, v["bayes_auc"], 1e-12);
}

TEST(RegressionModelTest, AgreesWithTheVectors) {
  const json& linear = Vectors()["reg_linear_seed7"];
  const LinearModel linear_model;
  for (int j = 0; j < LinearModel::kInputs; ++j) {
    ExpectClose(linear_model.At(7, 0).x[j], linear["x0"][j]);
  }
  const json& mlp = Vectors()["reg_mlp_seed7"];
  const MlpTeacherModel mlp_model;
  for (int i = 0; i < 3; ++i) {
    ExpectClose(linear_model.At(7, i).mean, linear["f"][i]);
    ExpectClose(linear_model.At(7, i).y, linear["y"][i]);
    ExpectClose(mlp_model.At(7, i).mean, mlp["f"][i]);
    ExpectClose(mlp_model.At(7, i).y, mlp["y"][i]);
  }
}

TEST(MarkovModelTest, AgreesWithTheVectors) {
  const json& v = Vectors()["markov_seed5"];
  const MarkovModel model;
  EXPECT_EQ(model.Stream(5, 64), v["tokens"].get<std::vector<uint8_t>>());
  // How often each token comes after two zeros, within five deviations.
  const std::vector<uint8_t> stream = model.Stream(5, 400'000);
  std::array<double, MarkovModel::kTokens> seen = {};
  double contexts = 0;
  for (size_t t = 2; t < stream.size(); ++t) {
    if (stream[t - 2] != 0 || stream[t - 1] != 0) continue;
    ++seen[stream[t]];
    ++contexts;
  }
  ASSERT_GT(contexts, 1000);
  for (int k = 0; k < MarkovModel::kTokens; ++k) {
    const double p = v["P_row0"][k];
    EXPECT_NEAR(seen[k] / contexts, p, 5 * std::sqrt(p * (1 - p) / contexts));
  }
}

SyntheticOptions Options(SyntheticKind kind, int64_t rows,
                         int64_t first_row = 0) {
  return {.kind = kind, .seed = 11, .first_row = first_row, .rows = rows};
}

TEST(SyntheticTest, ClickRowsAreNumbersThenIds) {
  const auto data =
      MakeSynthetic(Options(SyntheticKind::kCtr, 3, 5), TargetKind::kBinary);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->feature_shape, ElementsAre(21));
  const ClickModel::Row row = ClickModel().At(11, 6);
  for (int d = 0; d < 13; ++d) {
    EXPECT_EQ(data->numbers[21 + d], static_cast<float>(row.dense[d]));
  }
  for (int j = 0; j < 8; ++j) {
    EXPECT_EQ(data->numbers[21 + 13 + j], static_cast<float>(row.ids[j]));
  }
  // Rows 5, 6 and 7 of the vectors.
  EXPECT_THAT(data->targets.values, ElementsAre(1, 0, 0));
}

TEST(SyntheticTest, RegressionRowsAreTheModels) {
  const auto data = MakeSynthetic(Options(SyntheticKind::kMlpTeacher, 2, 3),
                                  TargetKind::kReal);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->feature_shape, ElementsAre(16));
  EXPECT_EQ(data->targets.values[1],
            static_cast<float>(MlpTeacherModel().At(11, 4).y));
  EXPECT_THAT(
      MakeSynthetic(Options(SyntheticKind::kLinear, 2), TargetKind::kReal)
          ->feature_shape,
      ElementsAre(20));
}

TEST(SyntheticTest, MarkovRowsAreTheTwoTokensBeforeTheirClass) {
  SyntheticOptions options = Options(SyntheticKind::kMarkovText, 4);
  options.seed = 5;  // the vectors' stream: 1, 3, 12, 0, 12, 15, ...
  auto data = MakeSynthetic(options, TargetKind::kClass);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->feature_shape, ElementsAre(32));
  EXPECT_THAT(data->code_widths, ElementsAre(16, 16));
  EXPECT_THAT(data->codes, ElementsAre(0, 0, 0, 1, 1, 3, 3, 12));
  EXPECT_THAT(data->targets.labels, ElementsAre(1, 3, 12, 0));
  options.first_row = 3;
  options.rows = 2;
  data = MakeSynthetic(options, TargetKind::kClass);
  EXPECT_THAT(data->codes, ElementsAre(3, 12, 12, 0));
  EXPECT_THAT(data->targets.labels, ElementsAre(0, 12));
}

TEST(SyntheticTest, MarkovSequencesFollowEachOther) {
  SyntheticOptions options = Options(SyntheticKind::kMarkovText, 2);
  options.seed = 5;  // 1, 3, 12, 0, 12, 15, ...
  options.length = 2;
  auto data = MakeSynthetic(options, TargetKind::kClass);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->feature_shape, ElementsAre(2));
  EXPECT_THAT(data->tokens, ElementsAre(1, 3, 12, 0, 12));
  EXPECT_EQ(data->token_stride, 2);
  EXPECT_EQ(data->num_tokens, 16);
  EXPECT_EQ(data->targets.width, 2);
  options.first_row = 1;
  options.rows = 1;
  data = MakeSynthetic(options, TargetKind::kClass);
  EXPECT_THAT(data->tokens, ElementsAre(12, 0, 12));
  options.length = 50'000'000;
  EXPECT_THAT(
      std::string(
          MakeSynthetic(options, TargetKind::kClass).status().message()),
      HasSubstr("wanted at most 50000000 tokens from the start"));
}

TEST(SyntheticTest, WhatCannotBeMadeIsTold) {
  const auto error = [](const SyntheticOptions& options, TargetKind kind) {
    return std::string(MakeSynthetic(options, kind).status().message());
  };
  EXPECT_THAT(error(Options(SyntheticKind::kCtr, 0), TargetKind::kBinary),
              HasSubstr("synthetic ctr: wanted 1 to 50000000 rows"));
  EXPECT_THAT(
      error(Options(SyntheticKind::kCtr, 50'000'001), TargetKind::kBinary),
      HasSubstr("got 50000001 from row 0 on"));
  EXPECT_THAT(error(Options(SyntheticKind::kCtr, 1, -1), TargetKind::kBinary),
              HasSubstr("from row -1 on"));
  EXPECT_THAT(error(Options(SyntheticKind::kMarkovText, 10, 49'999'991),
                    TargetKind::kClass),
              HasSubstr("the stream is drawn from its start"));
  EXPECT_THAT(error(Options(SyntheticKind::kLinear, 1), TargetKind::kClass),
              HasSubstr("wanted the loss mse"));
  EXPECT_THAT(error(Options(SyntheticKind::kMarkovText, 1), TargetKind::kReal),
              HasSubstr("wanted the loss cross_entropy"));
}

}  // namespace
}  // namespace tributary
