// SPDX-License-Identifier: Apache-2.0
#include "common/plan/model_cut.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

const std::string& WholeName(const ParameterSpec& spec) {
  return spec.whole_name.empty() ? spec.name : spec.whole_name;
}

}  // namespace

ParameterSpecs WholeParameters(const ParameterSpecs& planned) {
  ParameterSpecs whole;
  for (const ParameterSpec& spec : planned) {
    if (spec.whole_name.empty()) {
      whole.push_back({spec.name, spec.shape});
    } else if (whole.empty() || whole.back().name != spec.whole_name) {
      whole.push_back({spec.whole_name, spec.whole_shape});
    }
  }
  return whole;
}

Tensors AssembleWhole(const ParameterSpecs& planned, Tensors tensors) {
  Tensors whole;
  const std::string* last = nullptr;
  for (size_t p = 0; p < planned.size(); ++p) {
    const ParameterSpec& spec = planned[p];
    if (spec.whole_name.empty()) {
      whole.push_back(std::move(tensors[p]));
      last = nullptr;
      continue;
    }
    if (last == nullptr || *last != spec.whole_name) {
      whole.emplace_back(NumElements(spec.whole_shape));
    }
    last = &spec.whole_name;
    PlaceSlice(spec.whole_shape, spec.slice, tensors[p].data(),
               whole.back().data());
  }
  return whole;
}

Tensors CutWhole(const ParameterSpecs& planned, const Tensors& whole) {
  Tensors tensors;
  size_t next = 0;  // in `whole`
  const std::string* last = nullptr;
  for (const ParameterSpec& spec : planned) {
    const std::string& name = WholeName(spec);
    if (last != nullptr && *last != name) ++next;
    last = &name;
    if (spec.whole_name.empty()) {
      tensors.push_back(whole[next]);
      continue;
    }
    SliceParameter(spec.whole_shape, spec.slice, whole[next].data(),
                   tensors.emplace_back(spec.size()).data());
  }
  return tensors;
}

absl::StatusOr<std::vector<int>> PlacesInPlan(const ParameterSpecs& own,
                                              const ParameterSpecs& planned,
                                              const DeviceMesh& mesh,
                                              int rank) {
  std::map<std::string, int> held;
  for (size_t p = 0; p < planned.size(); ++p) {
    if (!mesh.Holds(rank, planned[p].holders)) continue;
    held[WholeName(planned[p])] = static_cast<int>(p);
  }
  std::vector<int> places;
  for (const ParameterSpec& spec : own) {
    const auto found = held.find(spec.name);
    if (found == held.end() || planned[found->second].shape != spec.shape) {
      return absl::FailedPreconditionError(absl::StrCat(
          "rank ", rank, " has a parameter ", spec.name, " of ", spec.size(),
          " elements; the plan gives it ",
          found == held.end() ? "none of this name"
                              : absl::StrCat(planned[found->second].size())));
    }
    places.push_back(found->second);
  }
  if (places.size() != held.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", rank, " has ", places.size(),
                     " parameters, the plan gives it ", held.size()));
  }
  return places;
}

int FirstHolder(const Holders& holders, const DeviceMesh& mesh) {
  return mesh.RankOf({.data = 0,
                      .stage = std::max(0, holders.stage),
                      .tensor = std::max(0, holders.tensor)});
}

}  // namespace tributary
