// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/recorded_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_tensors.h"
#include "common/files/safetensors.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

class CheckpointRecord final : public RecordedTensors {
 public:
  explicit CheckpointRecord(CheckpointTensors tensors)
      : tensors_(std::move(tensors)) {}
  const ParameterSpecs& specs() const override { return tensors_.specs(); }
  absl::StatusOr<std::vector<float>> Read(size_t index) const override {
    std::vector<float> values(static_cast<size_t>(specs()[index].size()));
    TRIBUTARY_RETURN_IF_ERROR(tensors_.Read(index, 0, absl::MakeSpan(values)));
    return values;
  }

 private:
  const CheckpointTensors tensors_;
};

class WeightRecord final : public RecordedTensors {
 public:
  explicit WeightRecord(SafetensorsReader reader)
      : reader_(std::move(reader)) {}
  const ParameterSpecs& specs() const override { return reader_.tensors(); }
  absl::StatusOr<std::vector<float>> Read(size_t index) const override {
    std::vector<float> values(static_cast<size_t>(specs()[index].size()));
    TRIBUTARY_RETURN_IF_ERROR(reader_.Read(index, absl::MakeSpan(values)));
    return values;
  }

 private:
  const SafetensorsReader reader_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedTensors>> RecordedTensors::Open(
    const RecordedState& state) {
  std::unique_ptr<RecordedTensors> made;
  if (state.is_checkpoint) {
    TRIBUTARY_ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(state.path));
    TRIBUTARY_ASSIGN_OR_RETURN(
        CheckpointTensors tensors,
        CheckpointTensors::Of(std::move(reader), /*with_state=*/true));
    made = std::make_unique<CheckpointRecord>(std::move(tensors));
  } else {
    TRIBUTARY_ASSIGN_OR_RETURN(SafetensorsReader reader,
                               SafetensorsReader::Open(state.path));
    made = std::make_unique<WeightRecord>(std::move(reader));
  }
  return made;
}

absl::StatusOr<std::vector<TensorDifference>> DifferentTensors(
    const RecordedState& a, const RecordedState& b) {
  TRIBUTARY_ASSIGN_OR_RETURN(const auto of_a, RecordedTensors::Open(a));
  TRIBUTARY_ASSIGN_OR_RETURN(const auto of_b, RecordedTensors::Open(b));
  std::vector<TensorDifference> found;
  for (size_t i = 0; i < of_a->specs().size(); ++i) {
    const ParameterSpec& spec = of_a->specs()[i];
    const auto other = std::find_if(
        of_b->specs().begin(), of_b->specs().end(),
        [&spec](const ParameterSpec& s) { return s.name == spec.name; });
    if (other == of_b->specs().end()) continue;
    if (other->shape != spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", spec.name, " has shape [", absl::StrJoin(spec.shape, ", "),
          "] in ", a.path, " and [", absl::StrJoin(other->shape, ", "), "] in ",
          b.path));
    }
    TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<float> values_a,
                               of_a->Read(i));
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::vector<float> values_b,
        of_b->Read(static_cast<size_t>(other - of_b->specs().begin())));
    TensorDifference difference{.name = spec.name, .elements = spec.size()};
    CompareElements(values_a.data(), values_b.data(), spec.size(), &difference);
    if (difference.different > 0) found.push_back(difference);
  }
  return found;
}

}  // namespace tributary
