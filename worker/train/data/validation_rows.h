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
// Which rows is a function of their number, the fraction and `seed` alone: a
// random choice, or without a seed the last rows. Of sequences of tokens they
// are always the last samples, and training samples whose tokens reach into
// them are dropped, because overlapping samples would let the model train on
// what it is validated with.
//
// InvalidArgument when no row is left to train on.
absl::StatusOr<RawData> TakeValidationRows(double fraction,
                                           std::optional<uint64_t> seed,
                                           RawData* train);

}  // namespace tributary
