// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "worker/train/predict/generate_text.h"

namespace tributary {

// The task that `tributary predict` or `evaluate` gives a `tributary-worker` to
// compute instead of training.
struct PredictionOptions {
  std::string predict;   // a run directory
  std::string evaluate;  // a run directory
  std::string input;     // a file of rows
  std::string labels;    // the file of the labels, if separate
  std::string weights;   // a file to use instead of the run's
  bool last = false;     // the run's weights of the last step
  std::string output;    // a file; empty: standard output
  bool json = false;     // JSON lines instead of CSV, or JSON instead of text
  bool top = false;
  bool allow_unknown = false;
  // Without an input: the set of the run to evaluate on: "test", "validation"
  // or "train".
  std::string data = "test";
  GenerateOptions generate;  // with tokens: writes a text, no predictions

  bool wanted() const { return !predict.empty() || !evaluate.empty(); }
};

// Runs the task and returns the exit code: 0, or, after one line on standard
// error, 2 if the run directory or the input is not as wanted, else 1.
int RunPrediction(const PredictionOptions& options);

}  // namespace tributary
