// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/recorded_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/files/safetensors.h"
#include "common/status/status_macros.h"
#include "coordinator/run/checkpoint_tensors.h"

namespace tributary {
namespace {

class CheckpointTensors final : public RecordedTensors {
 public:
  explicit CheckpointTensors(std::unique_ptr<CheckpointReader> reader)
      : reader_(std::move(reader)),
        tensors_(TensorsOf(*reader_, /*with_state=*/true)) {
    for (const CheckpointTensor& tensor : tensors_) {
      specs_.push_back(tensor.spec);
    }
  }
  const ParameterSpecs& specs() const override { return specs_; }
  absl::StatusOr<std::vector<float>> Read(size_t index) const override {
    const CheckpointTensor& tensor = tensors_[index];
    std::vector<float> values(static_cast<size_t>(tensor.spec.size()));
    TRIBUTARY_RETURN_IF_ERROR(reader_->ReadRange(
        tensor.tensor, tensor.parameter, 0, absl::MakeSpan(values)));
    return values;
  }

 private:
  const std::unique_ptr<CheckpointReader> reader_;
  const std::vector<CheckpointTensor> tensors_;
  ParameterSpecs specs_;
};

class WeightTensors final : public RecordedTensors {
 public:
  explicit WeightTensors(SafetensorsReader reader)
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
    made = std::make_unique<CheckpointTensors>(std::move(reader));
  } else {
    TRIBUTARY_ASSIGN_OR_RETURN(SafetensorsReader reader,
                               SafetensorsReader::Open(state.path));
    made = std::make_unique<WeightTensors>(std::move(reader));
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
