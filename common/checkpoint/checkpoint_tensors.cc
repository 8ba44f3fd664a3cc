// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_tensors.h"

#include "absl/strings/str_cat.h"
#include "common/plan/model_cut.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<CheckpointTensors> CheckpointTensors::Of(
    const std::shared_ptr<const CheckpointReader>& reader, bool with_state) {
  const ParameterSpecs whole = WholeParameters(reader->parameters());
  ParameterSpecs specs;
  for (const ParameterSpec& spec : whole) {
    specs.push_back({spec.name, spec.shape});
  }
  if (with_state) {
    for (const std::string& state : reader->state_names()) {
      for (const ParameterSpec& spec : whole) {
        specs.push_back(
            {absl::StrCat("optimizer.", state, ".", spec.name), spec.shape});
      }
    }
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<const PlannedCheckpoint> checkpoint,
      PlannedCheckpoint::Create(reader, whole, reader->state_names()));
  return CheckpointTensors(std::move(checkpoint), whole.size(),
                           std::move(specs));
}

}  // namespace tributary
