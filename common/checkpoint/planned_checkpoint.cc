// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/planned_checkpoint.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/parameter_slice.h"
#include "common/plan/model_cut.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

std::string SpecText(const ParameterSpec& spec) {
  return absl::StrCat(Quoted(spec.name), " [", absl::StrJoin(spec.shape, ", "),
                      "]");
}

const Shape& WholeShape(const ParameterSpec& spec) {
  return spec.whole_name.empty() ? spec.shape : spec.whole_shape;
}

}  // namespace

absl::Status CheckHolds(const ParameterSpecs& held,
                        const ParameterSpecs& wanted) {
  const ParameterSpecs there = WholeParameters(held);
  const ParameterSpecs needed = WholeParameters(wanted);
  for (size_t i = 0; i < std::min(there.size(), needed.size()); ++i) {
    if (there[i].name != needed[i].name || there[i].shape != needed[i].shape) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint holds ", SpecText(there[i]), ", wanted ",
                       SpecText(needed[i])));
    }
  }
  if (there.size() == needed.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint holds ", there.size(),
                   " parameters, wanted ", needed.size()));
}

absl::StatusOr<std::unique_ptr<PlannedCheckpoint>> PlannedCheckpoint::Create(
    std::shared_ptr<const CheckpointReader> reader, ParameterSpecs planned,
    absl::Span<const std::string> state_names) {
  const auto error = [&reader](const auto&... text) {
    return absl::FailedPreconditionError(
        absl::StrCat(reader->folder(), ": ", text...));
  };
  if (const absl::Status holds = CheckHolds(reader->parameters(), planned);
      !holds.ok()) {
    return error(holds.message());
  }
  if (state_names != reader->state_names()) {
    return error("the checkpoint holds the optimizer states [",
                 absl::StrJoin(reader->state_names(), ", "), "], wanted [",
                 absl::StrJoin(state_names, ", "), "]");
  }
  std::unique_ptr<PlannedCheckpoint> made(
      new PlannedCheckpoint(std::move(reader), std::move(planned)));
  made->FindSources();
  return made;
}

// Both lists have the same whole parameters in the same order, and the slices
// of one parameter are adjacent.
void PlannedCheckpoint::FindSources() {
  const ParameterSpecs& held = reader_->parameters();
  Source source;
  for (size_t p = 0; p < planned_.size(); ++p) {
    const ParameterSpec& spec = planned_[p];
    if (p == 0 || spec.whole_name.empty() ||
        spec.whole_name != planned_[p - 1].whole_name) {
      source.first = source.last;
      const std::string& whole = held[source.first].whole_name;
      do {
        ++source.last;
      } while (!whole.empty() && source.last < static_cast<int>(held.size()) &&
               held[source.last].whole_name == whole);
    }
    source.same = -1;
    for (int h = source.first; h < source.last; ++h) {
      if (held[h].slice == spec.slice && held[h].shape == spec.shape) {
        source.same = h;
      }
    }
    sources_.push_back(source);
  }
}

absl::Status PlannedCheckpoint::ReadBlock(
    const Block& block, float* weights, absl::Span<float* const> state) const {
  if (state.size() != reader_->state_names().size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(reader_->folder(), ": the checkpoint holds ",
                     reader_->state_names().size(),
                     " optimizer states, wanted ", state.size()));
  }
  for (size_t tensor = 0; tensor <= state.size(); ++tensor) {
    float* out = tensor == 0 ? weights : state[tensor - 1];
    for (const Slice& slice : block.slices) {
      const absl::Status status =
          ReadRange(static_cast<int>(tensor), slice.parameter, slice.begin,
                    absl::MakeSpan(out + slice.offset,
                                   static_cast<size_t>(slice.size())));
      if (absl::IsOutOfRange(status)) {
        return absl::FailedPreconditionError(status.message());
      }
      TRIBUTARY_RETURN_IF_ERROR(status);
    }
  }
  return absl::OkStatus();
}

absl::Status PlannedCheckpoint::ReadRange(int tensor, int parameter,
                                          int64_t begin,
                                          absl::Span<float> values) const {
  const int64_t end = begin + static_cast<int64_t>(values.size());
  const int tensors = 1 + static_cast<int>(reader_->state_names().size());
  if (parameter < 0 || parameter >= static_cast<int>(planned_.size()) ||
      tensor < 0 || tensor >= tensors || begin < 0 ||
      end > planned_[parameter].size()) {
    return absl::OutOfRangeError(absl::StrCat(
        reader_->folder(), ": wants elements ", begin, " to ", end,
        " of parameter ", parameter, ", which the plan does not have"));
  }
  const Source& source = sources_[parameter];
  if (source.same >= 0) {
    return reader_->ReadRange(tensor, source.same, begin, values);
  }
  absl::MutexLock lock(&mu_);
  if (recent_ != parameter) {
    tensors_.assign(tensors, {});
    recent_ = parameter;
  }
  std::vector<float>& elements = tensors_[tensor];
  if (elements.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(CutAnew(tensor, parameter, &elements));
  }
  std::copy_n(elements.begin() + begin, values.size(), values.begin());
  return absl::OkStatus();
}

absl::Status PlannedCheckpoint::CutAnew(int tensor, int parameter,
                                        std::vector<float>* elements) const {
  const ParameterSpec& spec = planned_[parameter];
  const Shape& shape = WholeShape(spec);
  std::vector<float> whole(NumElements(shape));
  const Source& source = sources_[parameter];
  for (int h = source.first; h < source.last; ++h) {
    const ParameterSpec& held = reader_->parameters()[h];
    std::vector<float> part(held.size());
    TRIBUTARY_RETURN_IF_ERROR(
        reader_->ReadRange(tensor, h, 0, absl::MakeSpan(part)));
    PlaceSlice(shape, held.slice, part.data(), whole.data());
  }
  if (spec.slice.whole()) {
    *elements = std::move(whole);
    return absl::OkStatus();
  }
  elements->resize(spec.size());
  SliceParameter(shape, spec.slice, whole.data(), elements->data());
  return absl::OkStatus();
}

}  // namespace tributary
