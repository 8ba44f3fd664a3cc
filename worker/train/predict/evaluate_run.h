// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "worker/train/predict/run_prediction.h"

namespace tributary {

// Evaluates a run's model on an input with labels, or on a data set of its
// job.yaml, and writes metrics and confusion matrix.
absl::Status EvaluateRun(const PredictionOptions& options);

}  // namespace tributary
