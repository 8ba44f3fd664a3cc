// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "common/layers/model_parameters.h"
#include "tests/unit/worker/train/pipeline/pipeline_training.h"

namespace tributary::testing {

// Four steps of a model with three classes on noise.
inline Training SmallTraining(const std::string& layers, const Shape& sample) {
  Training training;
  training.spec = FromText<v1::ModelSpec>(layers);
  training.sample = sample;
  training.outputs = 3;
  training.rows = 10;
  training.steps = 4;
  training.seed = 9;
  training.fill = [size = NumElements(sample)](int step, Batch* batch) {
    batch->features.Resize(batch->rows * size);
    const Floats x = Noise(batch->rows * size, 40 + step);
    std::copy(x.begin(), x.end(), batch->features.data());
    for (int64_t r = 0; r < batch->rows; ++r) batch->labels.push_back(r % 3);
    batch->first_row = 1;  // as the second of three data-parallel ranks
    batch->row_stride = 3;
  };
  const ParameterSpecs parameters = ModelParameters(training.spec);
  for (size_t p = 0; p < parameters.size(); ++p) {
    training.initial.push_back(Noise(parameters[p].size(), p + 1));
  }
  return training;
}

}  // namespace tributary::testing
