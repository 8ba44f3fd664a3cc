// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "worker/train/data/readers/input_file.h"

namespace tributary {

// Reads the extents at the start of a file of MNIST's format
// (yann.lecun.com/exdb/mnist), up to the first byte of data. InvalidArgument
// unless there are `min_dimensions` to `max_dimensions`.
absl::StatusOr<Shape> ReadIdxHeader(InputFile* file, int min_dimensions,
                                    int max_dimensions);

}  // namespace tributary
