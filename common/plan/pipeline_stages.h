// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/types/span.h"

namespace tributary {

// Cuts the layers of a model into `stages` ranges without a gap, none empty, so
// that the greatest cost of a range is least: stages + 1 bounds, stage s having
// layers [bounds[s], bounds[s + 1]). Of several such cuts the one whose earlier
// bounds lie later, first of all the first. costs: one a layer, none negative,
// at least as many as stages. Pure, so that every process cuts alike.
std::vector<int> CutStages(absl::Span<const double> costs, int stages);

// The stage that has layer `layer`.
int StageOfLayer(absl::Span<const int> bounds, int layer);

}  // namespace tributary
