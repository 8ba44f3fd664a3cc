// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

enum class NpyType { kFloat32, kFloat64, kInt32, kInt64, kUint8 };

size_t NpyTypeSize(NpyType type);

// The header of an NPY file. The shape has at least one dimension and no extent
// below 1, and the file can hold its data.
struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  Shape shape;
};

// Reads the file up to the first byte of data.
absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file);

}  // namespace tributary
