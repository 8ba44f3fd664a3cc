#pragma once

#include <vector>

#include "absl/types/span.h"
#include "worker/model/model.h"

namespace tributary {

// A parameter that several stages use, each with a copy: an embedding and the
// head that is tied to it. Its gradient is the sum over the stages, so that
// all copies make the same steps (Megatron-LM, Shoeybi et al. 2019).
struct SharedParameter {
  int parameter = 0;        // of this stage's model
  std::vector<int> stages;  // this one and the others, in order; first: owner
};

// Those of stage `stage`, whose model is `model`; bounds: as CutStages makes
// them.
std::vector<SharedParameter> SharedParameters(const v1::ModelSpec& spec,
                                              absl::Span<const int> bounds,
                                              const Model& model, int stage);

}  // namespace tributary
