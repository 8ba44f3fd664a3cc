// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/generate_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/files/atomic_file.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/counter_random.h"
#include "worker/train/model/decided_class.h"
#include "worker/train/predict/inputs/known_tokens.h"

namespace tributary {
namespace {

absl::StatusOr<std::vector<int32_t>> PromptTokens(const v1::TextTokens& text,
                                                  const std::string& prompt) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                             InputFile::OverBytes("--prompt", prompt));
  KnownTokens reader(std::move(file), text);
  std::vector<int32_t> tokens;
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const int32_t id, reader.Next());
    if (id < 0) break;
    tokens.push_back(id);
  }
  if (!tokens.empty()) return tokens;
  return absl::InvalidArgumentError("--prompt wants at least one token");
}

// The logits for the token after the last one of `tokens`. They depend on as
// many of the last tokens as a sample has.
absl::Span<const float> NextLogits(Predictor* predictor,
                                   const std::vector<int32_t>& tokens,
                                   Batch* batch) {
  const int64_t length = predictor->preprocessing().text().length();
  const auto size = static_cast<int64_t>(tokens.size());
  const int64_t used = std::min(size, length);
  batch->rows = 1;
  batch->features.Resize(length);
  // Positions after the last token change nothing before them.
  std::fill(batch->features.data(), batch->features.data() + length, 0.0f);
  std::copy(tokens.end() - used, tokens.end(), batch->features.data());
  const int64_t outputs = predictor->outputs();
  return predictor->Forward(*batch).subspan((used - 1) * outputs, outputs);
}

double UniformOf(uint64_t seed, uint64_t step) {
  return static_cast<double>(HashBits(seed, step, 0) >> 11) * 0x1p-53;
}

absl::Status WriteText(const std::string& text, const std::string& output) {
  if (!output.empty()) return WriteOutput(output, text);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
  return written ? absl::OkStatus()
                 : absl::UnavailableError("cannot write the text");
}

}  // namespace

int32_t DrawToken(absl::Span<const float> logits, double temperature,
                  double uniform) {
  const int64_t first = DecidedClass(logits);
  if (temperature == 0 || first == kUndecided) {
    return static_cast<int32_t>(first);
  }
  const double largest = logits[first];
  std::vector<double> sums;
  double sum = 0;
  for (float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - largest) / temperature);
    sums.push_back(sum);
  }
  if (std::isnan(sum)) return static_cast<int32_t>(kUndecided);
  const auto drawn =
      std::upper_bound(sums.begin(), sums.end() - 1, uniform * sum);
  return static_cast<int32_t>(drawn - sums.begin());
}

absl::Status GenerateText(Predictor* predictor, const GenerateOptions& options,
                          const std::string& output) {
  if (!predictor->preprocessing().has_text()) {
    return absl::InvalidArgumentError(
        "--generate wants a model that was trained on a text");
  }
  const v1::TextTokens& text = predictor->preprocessing().text();
  if (!predictor->is_causal()) {
    return absl::InvalidArgumentError(
        "--generate wants a causal model: one whose attentions have causal: "
        "true and whose other layers work on single positions");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                             PromptTokens(text, options.prompt));
  std::string written = options.prompt;
  Batch batch;
  for (int64_t step = 0; step < options.tokens; ++step) {
    // The model may have more outputs than the text has tokens.
    const absl::Span<const float> logits =
        NextLogits(predictor, tokens, &batch)
            .first(static_cast<size_t>(text.vocabulary_size()));
    const int32_t next =
        DrawToken(logits, options.temperature,
                  UniformOf(options.seed, static_cast<uint64_t>(step)));
    if (next == kUndecided) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no token ", step + 1, " of ", options.tokens,
          " can be drawn: the model's outputs are not numbers; has its "
          "training diverged?"));
    }
    tokens.push_back(next);
    written += TokenBytes(text, next);
  }
  if (text.tokens() == v1::TextSource::CHARACTERS) written += '\n';
  return WriteText(written, output);
}

}  // namespace tributary
