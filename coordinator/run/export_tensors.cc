// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/export_tensors.h"

#include <algorithm>
#include <memory>

#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kPieceElements = 1 << 18;

}  // namespace

absl::StatusOr<std::string> ExportTensors(
    const CheckpointReader& reader,
    const std::vector<CheckpointTensor>& tensors, const std::string& output) {
  ParameterSpecs specs;
  for (const CheckpointTensor& tensor : tensors) specs.push_back(tensor.spec);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                             SafetensorsWriter::Create(output, specs));
  Sha256 sha256;
  std::vector<float> values;
  for (const CheckpointTensor& tensor : tensors) {
    const int64_t size = tensor.spec.size();
    for (int64_t at = 0; at < size; at += kPieceElements) {
      values.resize(static_cast<size_t>(std::min(kPieceElements, size - at)));
      TRIBUTARY_RETURN_IF_ERROR(reader.ReadRange(
          tensor.tensor, tensor.parameter, at, absl::MakeSpan(values)));
      TRIBUTARY_RETURN_IF_ERROR(writer->Append(values));
      if (tensor.tensor == 0) {
        sha256.Update(values.data(), values.size() * sizeof(float));
      }
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(reader.CompareChecksums());
  TRIBUTARY_RETURN_IF_ERROR(writer->Commit());
  return sha256.HexDigest();
}

}  // namespace tributary
