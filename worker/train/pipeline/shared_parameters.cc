// SPDX-License-Identifier: Apache-2.0
#include "worker/train/pipeline/shared_parameters.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/layers/layer_kind.h"
#include "common/plan/pipeline_stages.h"

namespace tributary {

std::vector<SharedParameter> SharedParameters(const v1::ModelSpec& spec,
                                              absl::Span<const int> bounds,
                                              const Model& model, int stage) {
  std::map<std::string, std::set<int>> users;  // of a tied weight: its stages
  for (int layer = 0; layer < spec.sequential_size(); ++layer) {
    const LayerKind* kind = KindOf(spec.sequential(layer));
    const std::string name =
        kind == nullptr ? "" : kind->TiedTo(spec.sequential(layer));
    if (name.empty()) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(name, absl::MaxSplits('.', 1));
    int owner = 0;
    TRIBUTARY_CHECK(absl::SimpleAtoi(parts.first, &owner));
    users[name].insert(StageOfLayer(bounds, owner));
    users[name].insert(StageOfLayer(bounds, layer));
  }
  std::vector<SharedParameter> shared;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const auto found = users.find(model.parameters()[i].name);
    if (found == users.end()) continue;
    const std::set<int>& stages = found->second;
    if (stages.size() < 2 || stages.count(stage) == 0) continue;
    shared.push_back({static_cast<int>(i), {stages.begin(), stages.end()}});
  }
  return shared;
}

}  // namespace tributary
