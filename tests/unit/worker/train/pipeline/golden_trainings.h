// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/testing/golden.h"
#include "tests/unit/worker/train/pipeline/pipeline_training.h"

namespace tributary::testing {

// Golden names in the order of the model's parameters.
struct GoldenTraining {
  GoldenCase golden;
  std::vector<std::string> names;
  Training training;
};

GoldenTraining Mlp();
GoldenTraining Cnn();
GoldenTraining Gpt(const std::string& id);

// The training with SGD and `steps` steps, for comparing two runs.
Training WithSgd(Training training, int steps);

}  // namespace tributary::testing
