// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tributary {

// Area under the receiver operating characteristic: the probability that a
// positive sample scores higher than a negative one, where equal scores count
// half (Mann and Whitney 1947, by ranks). targets: 0 or 1 for each score. NaN
// unless there are both classes, or when a score is NaN.
double AreaUnderCurve(absl::Span<const float> scores,
                      absl::string_view targets);

}  // namespace tributary
