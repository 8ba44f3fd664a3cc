// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

// Reads NumPy's format (numpy.lib.format, versions 1 to 3), gzip or plain, in C
// order, little-endian: float32, float64, integers of 8 to 64 bits with and
// without sign, or booleans. Features are [rows, ...] and must be finite as
// float32; [rows] means one feature. uint8 keeps its values, 0 to 255, as do
// booleans, 0 and 1. Labels are [rows], or [rows, width] for kBinary and kReal.
// InvalidArgument when a file is malformed or of another type, or the two
// counts differ. `offsets` as in RawData.
absl::StatusOr<RawData> ReadNpy(InputFile* features, InputFile* labels,
                                const RowRange& range, TargetKind kind,
                                const std::vector<double>& offsets = {});

}  // namespace tributary
