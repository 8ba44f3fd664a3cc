// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/export_tensors.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/checkpoint/checkpoint_tensors.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kPieceElements = 1 << 18;

}  // namespace

absl::StatusOr<ExportedTensors> ExportTensors(
    const std::shared_ptr<const CheckpointReader>& reader, bool with_state,
    const std::string& output) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointTensors tensors,
                             CheckpointTensors::Of(reader, with_state));
  const ParameterSpecs& specs = tensors.specs();
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                             SafetensorsWriter::Create(output, specs));
  Sha256 sha256;
  std::vector<float> values;
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t size = specs[i].size();
    for (int64_t at = 0; at < size; at += kPieceElements) {
      values.resize(static_cast<size_t>(std::min(kPieceElements, size - at)));
      TRIBUTARY_RETURN_IF_ERROR(tensors.Read(i, at, absl::MakeSpan(values)));
      TRIBUTARY_RETURN_IF_ERROR(writer->Append(values));
      if (tensors.is_weight(i)) {
        sha256.Update(values.data(), values.size() * sizeof(float));
      }
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(reader->CompareChecksums());
  TRIBUTARY_RETURN_IF_ERROR(writer->Commit());
  return ExportedTensors{specs.size(), sha256.HexDigest()};
}

}  // namespace tributary
