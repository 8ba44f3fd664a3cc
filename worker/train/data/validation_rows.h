// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"

namespace tributary {

// Moves a fraction of the rows of `train`, at least one, out of it and returns
// them. Both sets keep the order of the source.
//
// The choice depends only on the number of rows, the fraction and `seed`: it is
// random, or without a seed takes the last rows. From token sequences it always
// takes the last samples, and drops training samples that overlap them, because
// the model must not train on tokens that it is validated with.
//
// InvalidArgument when no row is left to train on.
absl::StatusOr<RawData> TakeValidationRows(double fraction,
                                           std::optional<uint64_t> seed,
                                           RawData* train);

}  // namespace tributary
