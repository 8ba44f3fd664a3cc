// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/run_prediction.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/file_status.h"
#include "common/job/files/output_guard.h"
#include "common/model_record/run_weights.h"
#include "common/status/status_macros.h"
#include "worker/train/predict/evaluate_run.h"
#include "worker/train/predict/generate_text.h"
#include "worker/train/predict/inputs/input_rows.h"
#include "worker/train/predict/prediction_writer.h"
#include "worker/train/predict/predictor.h"

namespace tributary {
namespace {

// The tokens of a sample of a text, and where its first one is in the file.
struct TokensOf {
  const v1::ModelRecord* record = nullptr;
  const float* ids = nullptr;
  int64_t first = 0;
};

absl::Status WriteSample(const TokensOf& tokens, int64_t row,
                         InputRows::Positions positions,
                         absl::Span<const float> outputs, int64_t values,
                         PredictionWriter* writer) {
  const size_t size = outputs.size() / values;
  std::string token;
  for (int64_t p = positions.begin; p < positions.end; ++p) {
    PredictionWriter::Place place{.row = row, .position = p};
    if (tokens.ids != nullptr) {
      token = ClassName(*tokens.record, static_cast<int64_t>(tokens.ids[p]));
      place = {.row = 0,
               .position = tokens.first + p - positions.begin,
               .token = &token};
    }
    TRIBUTARY_RETURN_IF_ERROR(
        writer->Write(place, outputs.subspan(p * size, size)));
  }
  return absl::OkStatus();
}

absl::Status PredictRows(Predictor* predictor, InputRows* input,
                         PredictionWriter* writer) {
  Batch batch;
  int64_t row = 0, position = 0;
  const bool text = predictor->preprocessing().has_text();
  const int64_t values = predictor->values();
  const int64_t size = predictor->outputs() * values;
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(RawData raw, input->Next(predictor->max_rows()));
    if (raw.rows == 0) return absl::OkStatus();
    TRIBUTARY_RETURN_IF_ERROR(predictor->Gather(std::move(raw), &batch));
    const absl::Span<const float> outputs = predictor->Forward(batch);
    for (int64_t i = 0; i < batch.rows; ++i) {
      InputRows::Positions positions = {.begin = 0, .end = values};
      if (i + 1 == batch.rows && input->last_positions().end >= 0) {
        positions = input->last_positions();
      }
      const TokensOf tokens{
          .record = &predictor->record(),
          .ids = text ? batch.features.data() + i * values : nullptr,
          .first = position};
      TRIBUTARY_RETURN_IF_ERROR(WriteSample(tokens, row++, positions,
                                            outputs.subspan(i * size, size),
                                            values, writer));
      position += positions.end - positions.begin;
    }
  }
}

absl::Status CheckText(const Predictor& predictor) {
  const Shape& shape = predictor.model_shape();
  const v1::Preprocessing& preprocessing = predictor.preprocessing();
  if (!preprocessing.has_text()) return absl::OkStatus();
  if (shape.size() == 2 && shape[0] == preprocessing.text().length()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the model does not predict a token at every position: its "
                   "outputs are ",
                   ShapeText(shape)));
}

// Tells the user which weights are used if a run has two sets.
void NoteBest(const PredictionOptions& options, const std::string& weights) {
  if (weights != options.predict + kBestWeightsFile) return;
  std::fprintf(stderr,
               "tributary: the weights are those of the best evaluation, %s; "
               "--last takes those of the last step\n",
               weights.c_str());
}

absl::Status Predict(const PredictionOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Predictor> predictor,
      Predictor::Open(options.predict, {options.weights, options.last}));
  TRIBUTARY_RETURN_IF_ERROR(CheckText(*predictor));
  NoteBest(options, predictor->weights());
  if (options.generate.tokens > 0) {
    return GenerateText(predictor.get(), options.generate, options.output);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputRows> input,
                             OpenInput(predictor->preprocessing(),
                                       {.path = options.input,
                                        .kind = predictor->target_kind(),
                                        .allow_unknown = options.allow_unknown,
                                        .may_pad = predictor->is_causal()}));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionWriter> writer,
      PredictionWriter::Create(predictor->record(),
                               {.path = options.output,
                                .format = options.json ? PredictionFormat::kJson
                                                       : PredictionFormat::kCsv,
                                .top = options.top,
                                .positions = predictor->values() > 1,
                                .outputs = predictor->outputs()}));
  TRIBUTARY_RETURN_IF_ERROR(
      PredictRows(predictor.get(), input.get(), writer.get()));
  TRIBUTARY_RETURN_IF_ERROR(writer->Finish());
  if (const int64_t empty = writer->undecided(); empty > 0) {
    std::fprintf(stderr,
                 "tributary: %lld predictions are empty, because the model's "
                 "outputs are not numbers there\n",
                 static_cast<long long>(empty));
  }
  for (const std::string& warning : input->TakeWarnings()) {
    std::fprintf(stderr, "tributary: %s\n", warning.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int RunPrediction(const PredictionOptions& options) {
  const std::string& run =
      options.predict.empty() ? options.evaluate : options.predict;
  absl::Status status =
      CheckOutput({.path = options.output,
                   .option = "--output",
                   .read = {options.input, options.labels, options.weights},
                   .runs = {run}});
  if (status.ok()) {
    status = options.predict.empty() ? EvaluateRun(options) : Predict(options);
  }
  if (status.ok() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    status = FileError("standard output", "write", errno);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "tributary: %s\n",
               std::string(status.message()).c_str());
  const bool refused =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return refused ? 2 : 1;
}

}  // namespace tributary
