// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "worker/train/model/model.h"

namespace tributary {

// A parameter of which several stages hold a copy: an embedding and the head
// that is tied to it. Its gradient is summed over the stages, so that all
// copies take the same steps (Megatron-LM, Shoeybi et al. 2019).
struct SharedParameter {
  int parameter = 0;        // index in this stage's model
  std::vector<int> stages;  // all its stages, ascending; the first is the owner
};

// The shared parameters of stage `stage` with the model `model`. bounds: as
// CutStages makes them.
std::vector<SharedParameter> SharedParameters(const v1::ModelSpec& spec,
                                              absl::Span<const int> bounds,
                                              const Model& model, int stage);

}  // namespace tributary
