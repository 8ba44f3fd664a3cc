// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/types/span.h"

namespace tributary {

// Cuts the layers of a model into `stages` ranges without a gap, none empty, so
// that the largest cost of a range is as small as possible. Returns stages + 1
// bounds: stage s has layers [bounds[s], bounds[s + 1]). Of several such cuts,
// returns the one with the latest first bound, then the latest second one, and
// so on. costs: one for each layer, none negative, at least as many as stages.
// Pure, so that every process cuts alike.
std::vector<int> CutStages(absl::Span<const double> costs, int stages);

// The stage that has layer `layer`.
int StageOfLayer(absl::Span<const int> bounds, int layer);

}  // namespace tributary
