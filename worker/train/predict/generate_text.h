// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/train/predict/predictor.h"

namespace tributary {

struct GenerateOptions {
  int64_t tokens = 0;  // 0: do not generate text
  std::string prompt;
  uint64_t seed = 1;
  double temperature = 1;  // 0: always the most probable token
};

// Writes the prompt and `tokens` tokens that continue it, each drawn with its
// probability, which the model computes from the tokens before it. The text is
// a function of model, prompt, seed and temperature. InvalidArgument: the model
// is not causal, or the prompt is empty or has tokens that the training text
// lacks. output: a file; empty: standard output.
absl::Status GenerateText(Predictor* predictor, const GenerateOptions& options,
                          const std::string& output);

// Draws a token with the probabilities softmax(logits / temperature);
// temperature 0 takes the first of the largest logits. `uniform` is in [0, 1).
// Returns kUndecided if there are no probabilities, because a logit is not a
// number.
int32_t DrawToken(absl::Span<const float> logits, double temperature,
                  double uniform);

}  // namespace tributary
