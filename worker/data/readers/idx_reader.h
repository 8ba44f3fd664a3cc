// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

// Reads MNIST's format (yann.lecun.com/exdb/mnist): the big-endian magic
// 0x000008NN for NN dimensions, NN extents, then bytes. Images have two to four
// dimensions, of which the first counts samples; labels have one. Pixels are
// scaled to [0, 1] as byte / 255. InvalidArgument when a file is malformed or
// the two counts differ.
absl::StatusOr<RawData> ReadIdx(InputFile* images, InputFile* labels,
                                const RowRange& range, TargetKind kind);

// The extents at the start of such a file, which is read up to its first byte
// of data. InvalidArgument unless there are `min_dimensions` to
// `max_dimensions`.
absl::StatusOr<Shape> ReadIdxHeader(InputFile* file, int min_dimensions,
                                    int max_dimensions);

}  // namespace tributary
