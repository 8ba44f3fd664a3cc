// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"

namespace tributary {

// The median of each numeric column; of an even number of values, the mean of
// the middle two. NaN marks a missing value; a column without values gets NaN.
// Visits the rows twice for each 32 columns and counts values by their bits, so
// that the memory does not depend on the number of rows.
absl::StatusOr<std::vector<double>> ColumnMedians(int64_t columns,
                                                  const RowParts& parts);

}  // namespace tributary
