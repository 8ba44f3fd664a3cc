// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/model_record/model_record.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/worker/train/predict/records.h"
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

class PredictorTest : public testing::TemporaryFolderTest {
 protected:
  PredictorTest() {
    record_.set_format_version(kModelFormatVersion);
    record_.mutable_loss()->mutable_cross_entropy();
    record_.set_output(v1::OUTPUT_KIND_CLASSES);
    *record_.mutable_preprocessing() = AnimalTable();
    v1::LinearSpec* linear = record_.add_sequential()->mutable_linear();
    linear->set_in(4);
    linear->set_out(2);
    linear->set_bias(false);
    for (float value : {1.0f, 10.0f}) {
      record_.mutable_preprocessing()->mutable_numeric()->add_mean(value);
    }
    for (float value : {2.0f, 4.0f}) {
      record_.mutable_preprocessing()->mutable_numeric()->add_deviation(value);
    }
  }

  void WriteWeights(const ParameterSpecs& specs,
                    const std::vector<float>& values,
                    const std::string& file = "weights.safetensors") {
    const float* data = values.data();
    TRIBUTARY_EXPECT_OK(WriteSafetensors(Path(file), specs, {&data, 1}));
  }
  absl::StatusOr<std::unique_ptr<Predictor>> Open(
      const Predictor::WeightsChoice& choice = {}) {
    Write("model.json", ModelRecordJson(record_, metrics_));
    return Predictor::Open(folder(), choice);
  }

  v1::ModelRecord record_;
  std::optional<ModelMetrics> metrics_;
  const ParameterSpecs specs_ = {{.name = "0.weight", .shape = {2, 4}}};
};

// Features (5 - 1) / 2 = 2, (2 - 10) / 4 = -2 and a block of (blue, red).
TEST_F(PredictorTest, RowsAreNormalizedAndMultiplied) {
  WriteWeights(specs_, {1, 1, 10, 20, 1, -1, 0, 0.5f});
  const auto predictor = Open();
  TRIBUTARY_ASSERT_OK(predictor);
  auto input = OpenInput(
      (*predictor)->preprocessing(),
      {.path = Write("rows.csv", "age,mass,colour\n5,2,red\n1,10,blue\n")});
  TRIBUTARY_ASSERT_OK(input);
  Batch batch;
  TRIBUTARY_ASSERT_OK((*predictor)->Gather(*(*input)->Next(2), &batch));
  EXPECT_THAT((*predictor)->Forward(batch), ElementsAre(20, 4.5f, 10, 0));
  EXPECT_EQ((*predictor)->values(), 1);
  EXPECT_EQ((*predictor)->outputs(), 2);
}

TEST_F(PredictorTest, TheBestWeightsAreTakenWhereTheRunHasKeptThem) {
  WriteWeights(specs_, std::vector<float>(8, 1));
  auto predictor = Open();
  TRIBUTARY_ASSERT_OK(predictor);
  EXPECT_EQ((*predictor)->weights(), Path("weights.safetensors"));
  WriteWeights(specs_, std::vector<float>(8, 2), "best.safetensors");
  predictor = Open();
  TRIBUTARY_ASSERT_OK(predictor);
  EXPECT_EQ((*predictor)->weights(), Path("best.safetensors"));
  EXPECT_EQ(*(*predictor)->model()->weight(0), 2);
  for (const Predictor::WeightsChoice& choice :
       {Predictor::WeightsChoice{.file = Path("weights.safetensors")},
        Predictor::WeightsChoice{.last = true}}) {
    predictor = Open(choice);
    TRIBUTARY_ASSERT_OK(predictor);
    EXPECT_EQ(*(*predictor)->model()->weight(0), 1);
  }
}

TEST_F(PredictorTest, WeightsThatChangedAfterTheRunAreRefused) {
  const std::vector<float> weights(8, 1), best(8, 2);
  const auto sha256_of = [this](const std::vector<float>& values) {
    return WeightsSha256(specs_, std::vector<const float*>{values.data()});
  };
  metrics_ = ModelMetrics{.status = "done",
                          .weights_sha256 = sha256_of(weights),
                          .best_weights_sha256 = sha256_of(best)};
  WriteWeights(specs_, weights);
  TRIBUTARY_EXPECT_OK(Open());
  WriteWeights(specs_, {1, 1, 1, 1, 1, 1, 1, 2});
  const auto refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      "weights.safetensors has changed since the run: the sha256 of its "
      "weights begins with ");
  EXPECT_THAT(Open(), refused);
  TRIBUTARY_EXPECT_OK(Open({.file = Path("weights.safetensors")}));
  WriteWeights(specs_, best, "best.safetensors");
  TRIBUTARY_EXPECT_OK(Open());
  EXPECT_THAT(Open({.last = true}), refused);
  WriteWeights(specs_, {2, 2, 2, 2, 2, 2, 2, 1}, "best.safetensors");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "best.safetensors has changed since the run"));
  // The model.json of an older run has no checksum of the best weights.
  metrics_->best_weights_sha256.clear();
  TRIBUTARY_EXPECT_OK(Open());
}

TEST_F(PredictorTest, WeightsOfARunWithOtherNamesAreRefused) {
  std::filesystem::create_directory(Path("other"));
  const std::string file = "other/weights.safetensors";
  WriteWeights(specs_, std::vector<float>(8, 1), file);
  const Predictor::WeightsChoice choice = {.file = Path(file)};
  TRIBUTARY_EXPECT_OK(Open(choice));
  v1::ModelRecord other = record_;
  const auto open = [&] {
    Write("other/model.json", ModelRecordJson(other, std::nullopt));
    return Open(choice);
  };
  TRIBUTARY_EXPECT_OK(open());
  v1::Preprocessing* its = other.mutable_preprocessing();
  its->mutable_class_names()->SwapElements(0, 1);
  EXPECT_THAT(
      open(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               absl::StrCat(
                   Path(file), ": class 0 is \"cat\" in ", folder(),
                   "/model.json, which is class 1 in ", Path("other"),
                   "/model.json, so its output would be that of another class; "
                   "use the run ",
                   Path("other"),
                   " itself, or weights of a run with the same names")));
  *its = record_.preprocessing();
  its->set_class_names(1, "horse");
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "class 1 is \"dog\" in "));
  *its = record_.preprocessing();
  its->mutable_csv()->mutable_numeric(0)->set_name("mass");
  its->mutable_csv()->mutable_numeric(1)->set_name("age");
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "input 0 is \"age\" in "));
  // Another table's statistics differ a little.
  *its = record_.preprocessing();
  its->mutable_numeric()->set_mean(1, 11);
  TRIBUTARY_EXPECT_OK(open());
  its->mutable_numeric()->clear_mean();
  its->mutable_numeric()->clear_deviation();
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "input 0 (\"age\") is x in "));
  *its = record_.preprocessing();
  v1::DataSource* source = other.mutable_training_data()->mutable_source();
  source->mutable_csv()->mutable_missing()->set_constant(-999);
  TRIBUTARY_EXPECT_OK(open());
  source = record_.mutable_training_data()->mutable_source();
  source->mutable_csv()->mutable_missing()->set_mean(true);
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "a missing number becomes -999 in "));
  other.add_sequential()->mutable_tanh();
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "or weights of a run with the same model"));
}

TEST_F(PredictorTest, ALabelThatTheModelCannotSayIsNamedWithItsLine) {
  WriteWeights(specs_, std::vector<float>(8));
  record_.mutable_preprocessing()->clear_class_names();
  const auto predictor = Open();
  TRIBUTARY_ASSERT_OK(predictor);
  auto input = OpenInput(
      (*predictor)->preprocessing(),
      {.path =
           Write("rows.csv", "animal,age,mass,colour\n1,5,2,red\n2,5,2,red\n"),
       .labels = true});
  TRIBUTARY_ASSERT_OK(input);
  Batch batch;
  EXPECT_THAT((*predictor)->Gather(*(*input)->Next(2), &batch),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rows.csv: line 3 has class 2, but the model's 2 "
                       "outputs are for classes 0 to 1"));
}

TEST_F(PredictorTest, MissingAndOtherWeightsAreNamed) {
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kNotFound,
                               "has no weights.safetensors"));
  WriteWeights({{.name = "1.weight", .shape = {2, 4}}}, std::vector<float>(8));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument, "0.weight"));
}

TEST_F(PredictorTest, AMissingPreprocessingIsExplained) {
  record_.clear_preprocessing();
  record_.set_no_preprocessing("it is too large");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "does not say how inputs are made: it is too "
                               "large"));
}

// A model.json that was changed by hand must end with an error, and must not
// reach foreign memory.
TEST_F(PredictorTest, ModelsThatDoNotFitAreRefused) {
  v1::LinearSpec* linear = record_.mutable_sequential(0)->mutable_linear();
  linear->set_in(5);
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kInvalidArgument, "model.json: "));
  linear->set_in(4);
  linear->set_out(-2);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument, "out"));
  linear->set_out(1);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               "2 classes, but the model's outputs are for 1"));
}

TEST_F(PredictorTest, TokensOutsideTheEmbeddingAreRefused) {
  record_.clear_sequential();
  record_.mutable_preprocessing()->Clear();
  record_.mutable_preprocessing()->set_source("npy");
  record_.mutable_preprocessing()->add_feature_shape(2);
  v1::EmbeddingSpec* embedding = record_.add_sequential()->mutable_embedding();
  embedding->set_tokens(3);
  embedding->set_dim(2);
  WriteWeights({{.name = "0.weight", .shape = {3, 2}}}, {0, 1, 2, 3, 4, 5});
  const auto predictor = Open();
  TRIBUTARY_ASSERT_OK(predictor);
  RawData raw;
  raw.name = "ids.npy";
  raw.rows = 1;
  raw.feature_shape = {2};
  raw.numeric_width = 2;
  raw.targets.kind = TargetKind::kReal;
  raw.targets.width = 0;
  raw.numbers = {2, 0};
  Batch batch;
  TRIBUTARY_ASSERT_OK((*predictor)->Gather(raw, &batch));
  EXPECT_THAT((*predictor)->Forward(batch), ElementsAre(4, 5, 0, 1));
  raw.numbers = {2, 3};
  EXPECT_THAT((*predictor)->Gather(raw, &batch),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "ids.npy: sample 0, feature 1 is 3"));
}

TEST_F(PredictorTest, CausalModelsAreRecognized) {
  record_.clear_sequential();
  *record_.mutable_preprocessing() = LetterText(4);
  v1::EmbeddingSpec* embedding = record_.add_sequential()->mutable_embedding();
  embedding->set_tokens(5);
  embedding->set_dim(5);
  v1::AttentionSpec* attention = record_.add_sequential()
                                     ->mutable_residual()
                                     ->add_body()
                                     ->mutable_attention();
  attention->set_dim(5);
  attention->set_heads(1);
  attention->set_qkv_bias(false);
  const ParameterSpecs specs = {
      {.name = "0.weight", .shape = {5, 5}},
      {.name = "1.body.0.in_proj_weight", .shape = {15, 5}},
      {.name = "1.body.0.out_proj.weight", .shape = {5, 5}},
      {.name = "1.body.0.out_proj.bias", .shape = {5}}};
  const std::vector<float> zeros(75);
  const std::vector<const float*> data(4, zeros.data());
  TRIBUTARY_ASSERT_OK(
      WriteSafetensors(Path("weights.safetensors"), specs, data));
  for (const bool causal : {false, true}) {
    record_.mutable_sequential(1)
        ->mutable_residual()
        ->mutable_body(0)
        ->mutable_attention()
        ->set_causal(causal);
    const auto predictor = Open();
    TRIBUTARY_EXPECT_OK(predictor);
    EXPECT_EQ((*predictor)->is_causal(), causal);
  }
}

}  // namespace
}  // namespace tributary
