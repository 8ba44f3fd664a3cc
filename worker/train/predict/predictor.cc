// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/predictor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/model_record/model_record.h"
#include "common/model_record/recorded_meaning.h"
#include "common/model_record/run_weights.h"
#include "common/status/status_macros.h"
#include "worker/train/data/dataset.h"
#include "worker/train/predict/inputs/known_tokens.h"

namespace tributary {
namespace {

// Bounds the memory of a batch: its samples, and the elements of its inputs.
constexpr int64_t kMaxRows = 256;
constexpr int64_t kMaxElements = 1 << 18;
// Positions of sequences, each of which becomes a vector.
constexpr int64_t kMaxPositions = 2048;

Normalization NormalizationOf(const v1::NumericFeatures& numeric) {
  return {{numeric.mean().begin(), numeric.mean().end()},
          {numeric.deviation().begin(), numeric.deviation().end()}};
}

Shape FeatureShape(const v1::Preprocessing& preprocessing) {
  return {preprocessing.feature_shape().begin(),
          preprocessing.feature_shape().end()};
}

int64_t RowsOf(const v1::Preprocessing& preprocessing) {
  const int64_t elements = NumElements(FeatureShape(preprocessing));
  const int64_t most =
      preprocessing.has_numeric() ? kMaxElements : kMaxPositions;
  return std::clamp<int64_t>(most / elements, 1, kMaxRows);
}

bool MixesPositions(const v1::LayerSpec& layer);

template <typename Layers>
bool AnyMixesPositions(const Layers& layers) {
  return std::any_of(layers.begin(), layers.end(), MixesPositions);
}

// Assumes that the layer is over [positions, features].
bool MixesPositions(const v1::LayerSpec& layer) {
  switch (layer.kind_case()) {
    case v1::LayerSpec::kAttention:
      return !layer.attention().causal();
    case v1::LayerSpec::kResidual:
      return AnyMixesPositions(layer.residual().body()) ||
             AnyMixesPositions(layer.residual().shortcut());
    case v1::LayerSpec::kFlatten:
    case v1::LayerSpec::kConv2D:
    case v1::LayerSpec::kMaxPool:
    case v1::LayerSpec::kAvgPool:
    case v1::LayerSpec::kGlobalAvgPool:
    case v1::LayerSpec::kBatchNorm:
    case v1::LayerSpec::kGroupNorm:
      return true;
    default:
      return false;
  }
}

absl::Status OtherWeights(const std::string& file, const std::string& found,
                          const std::string& recorded) {
  constexpr size_t kDigits = 12;
  return absl::InvalidArgumentError(absl::StrCat(
      file,
      " has changed since the run: the sha256 of its weights begins with ",
      found.substr(0, kDigits), ", and model.json records ",
      recorded.substr(0, kDigits),
      "; use it as it is with --weights FILE, or export the weights of a "
      "checkpoint with `tributary export`"));
}

}  // namespace

std::string ClassName(const v1::ModelRecord& record, int64_t index) {
  const v1::Preprocessing& preprocessing = record.preprocessing();
  if (index < preprocessing.text().vocabulary_size()) {
    return TokenBytes(preprocessing.text(), static_cast<int32_t>(index));
  }
  if (index < preprocessing.class_names_size()) {
    return preprocessing.class_names(static_cast<int>(index));
  }
  return absl::StrCat(index);
}

Predictor::Predictor(v1::ModelRecord record)
    : record_(std::move(record)),
      normalization_(NormalizationOf(record_.preprocessing().numeric())),
      ops_(CreateCpuOps()) {}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Open(
    const std::string& run, const WeightsChoice& choice) {
  TRIBUTARY_ASSIGN_OR_RETURN(v1::ModelRecord record, ReadModelRecord(run));
  if (!record.has_preprocessing()) {
    return absl::InvalidArgumentError(absl::StrCat(
        run, kModelFile,
        " does not say how inputs are made: ", record.no_preprocessing()));
  }
  std::unique_ptr<Predictor> predictor(new Predictor(std::move(record)));
  if (absl::Status created = predictor->CreateModel(); !created.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        run, kModelFile, ": ", absl::string_view(created.message())));
  }
  const std::string last = run + kLastWeightsFile;
  predictor->weights_ = !choice.file.empty() ? choice.file
                        : choice.last        ? last
                                             : WeightsOfRun(run);
  if (predictor->weights_.empty()) {
    return absl::NotFoundError(absl::StrCat(
        run,
        " has no weights.safetensors, because the run has not ended or has "
        "failed; if it has a checkpoint, export its weights with `tributary "
        "export`, and pass that file with --weights"));
  }
  const bool is_recorded = choice.file.empty();
  const bool of_best = predictor->weights_ != last;
  TRIBUTARY_RETURN_IF_ERROR(predictor->LoadWeights(
      is_recorded ? RecordedWeightsSha256(run, of_best) : ""));
  if (!is_recorded) {
    TRIBUTARY_RETURN_IF_ERROR(
        CheckWeightsMeaning(choice.file, predictor->record_, run));
  }
  return predictor;
}

absl::Status Predictor::CreateModel() {
  v1::ModelSpec spec;
  *spec.mutable_sequential() = record_.sequential();
  TRIBUTARY_ASSIGN_OR_RETURN(
      model_,
      Model::Create(
          spec, FeatureShape(preprocessing()),
          {.ops = ops_.get(), .max_rows = RowsOf(preprocessing()), .seed = 1}));
  const int64_t classes = preprocessing().has_text()
                              ? preprocessing().text().vocabulary_size()
                              : preprocessing().class_names_size();
  const int64_t most = target_kind() == TargetKind::kBinary ? 2 : outputs();
  if (classes > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("preprocessing has ", classes,
                     " classes, but the model's outputs are for ", most));
  }
  return absl::OkStatus();
}

absl::Status Predictor::LoadWeights(const std::string& recorded) {
  TRIBUTARY_ASSIGN_OR_RETURN(const auto weights,
                             ReadSafetensors(weights_, model_->parameters()));
  std::vector<const float*> data;
  for (const std::vector<float>& tensor : weights) {
    data.push_back(tensor.data());
  }
  if (!recorded.empty()) {
    const std::string found = WeightsSha256(model_->parameters(), data);
    if (found != recorded) return OtherWeights(weights_, found, recorded);
  }
  for (size_t p = 0; p < weights.size(); ++p) {
    ops_->CopyIn(model_->weight(static_cast<int>(p)), weights[p].data(),
                 weights[p].size() * sizeof(float));
  }
  return absl::OkStatus();
}

TargetKind Predictor::target_kind() const {
  switch (record_.output()) {
    case v1::OUTPUT_KIND_BINARY:
      return TargetKind::kBinary;
    case v1::OUTPUT_KIND_NUMBERS:
      return TargetKind::kReal;
    default:
      return TargetKind::kClass;
  }
}

int64_t Predictor::outputs() const {
  return target_kind() == TargetKind::kClass ? model_->output_shape().back()
                                             : 1;
}

bool Predictor::is_causal() const {
  return !AnyMixesPositions(record_.sequential()) &&
         model_->output_shape().size() == 2;
}

absl::Status Predictor::Gather(RawData raw, Batch* batch) const {
  const Dataset data(std::move(raw), normalization_);
  if (model_->num_tokens() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(data.CheckTokens(model_->num_tokens()));
  }
  // Rows to predict have no class.
  if (data.target_kind() == TargetKind::kClass) {
    TRIBUTARY_RETURN_IF_ERROR(data.CheckClasses(outputs()));
  }
  std::vector<int64_t> rows(data.rows());
  for (int64_t row = 0; row < data.rows(); ++row) rows[row] = row;
  data.Gather(rows, batch);
  return absl::OkStatus();
}

absl::Span<const float> Predictor::Forward(const Batch& batch) {
  const float* outputs =
      model_->Forward(batch.features.data(), batch.rows, ForwardContext());
  outputs_.resize(batch.rows * model_->output_size());
  ops_->CopyOut(outputs_.data(), outputs, outputs_.size() * sizeof(float));
  return outputs_;
}

}  // namespace tributary
