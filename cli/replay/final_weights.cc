// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/final_weights.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/replay/recorded_tensors.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

absl::StatusOr<std::string> Sha256OfFile(const std::string& path,
                                         const ParameterSpecs& parameters) {
  TRIBUTARY_ASSIGN_OR_RETURN(const SafetensorsReader reader,
                             SafetensorsReader::Open(path));
  return WeightsSha256(reader,
                       parameters.empty() ? reader.tensors() : parameters);
}

}  // namespace

absl::StatusOr<std::optional<ChangedWeights>> FindChangedWeights(
    const RecordedRun& run) {
  if (run.weights_sha256.empty()) return std::nullopt;
  const RecordedState* const weights = run.FinalWeights();
  if (weights == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the final weights cannot be compared: ", run.folder,
                     "/summary.json records their checksum, but ", run.folder,
                     "/weights.safetensors does not exist"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string found,
                             Sha256OfFile(weights->path, run.parameters));
  if (found == run.weights_sha256) return std::nullopt;
  ChangedWeights changed{.path = weights->path,
                         .recorded = run.weights_sha256,
                         .found = found,
                         .tensor = {}};
  const RecordedState* const state = run.StateAfter(weights->step);
  if (state->is_checkpoint) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<TensorDifference> tensors,
                               DifferentTensors(*state, *weights));
    if (!tensors.empty()) changed.tensor = tensors[0];
  }
  return changed;
}

std::string ChecksumsText(const ChangedWeights& changed) {
  return absl::StrCat(
      "the sha256 of its weights begins with ", changed.found.substr(0, 12),
      ", and summary.json records ", changed.recorded.substr(0, 12));
}

}  // namespace tributary
