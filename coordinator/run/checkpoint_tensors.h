// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace tributary {

// A tensor of a checkpoint, by its name for people and by its indices for
// CheckpointReader.
struct CheckpointTensor {
  ParameterSpec spec;  // a state is named "optimizer.STATE.PARAMETER"
  int tensor = 0;
  int parameter = 0;
};

// The weights in the model's order, then each state in the same order.
inline std::vector<CheckpointTensor> TensorsOf(const CheckpointReader& reader,
                                               bool with_state) {
  std::vector<CheckpointTensor> tensors;
  const size_t num_states = with_state ? reader.state_names().size() : 0;
  for (size_t tensor = 0; tensor <= num_states; ++tensor) {
    for (size_t p = 0; p < reader.parameters().size(); ++p) {
      const ParameterSpec& spec = reader.parameters()[p];
      const std::string name =
          tensor == 0
              ? spec.name
              : absl::StrCat("optimizer.", reader.state_names()[tensor - 1],
                             ".", spec.name);
      tensors.push_back(
          {{name, spec.shape}, static_cast<int>(tensor), static_cast<int>(p)});
    }
  }
  return tensors;
}

}  // namespace tributary
