#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/core/evaluations.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The bytes of coordinator.state: a CRC-32C of the message, then the message.
std::string EncodeState(const v1::CoordinatorState& state);

// The evaluations of a state, and back.
std::vector<EvaluationRecord> EvaluationsOf(const v1::CoordinatorState& state);
void SaveEvaluations(const std::vector<EvaluationRecord>& evaluations,
                     v1::CoordinatorState* state);

// DataLoss, naming `file`: the bytes are damaged. InvalidArgument: they are
// whole, but no coordinator can go on with them: the sentence says what was
// wanted and what stands there.
absl::StatusOr<v1::CoordinatorState> DecodeState(const std::string& file,
                                                 absl::string_view bytes);

}  // namespace tributary
