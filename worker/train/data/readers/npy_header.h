// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "worker/train/data/readers/input_file.h"

namespace tributary {

enum class NpyType {
  kFloat32,
  kFloat64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kBool,  // a byte that is 0 or 1
  kUint8,
  kUint16,
  kUint32,
  kUint64
};

size_t NpyTypeSize(NpyType type);

// Calls visit(T()) with the C++ type of the values.
template <typename Visit>
auto VisitNpyType(NpyType type, const Visit& visit) {
  switch (type) {
    // The calls look alike and have different types.
    case NpyType::kFloat32:  // NOLINT(bugprone-branch-clone)
      return visit(float());
    case NpyType::kFloat64:
      return visit(double());
    case NpyType::kInt8:
      return visit(int8_t());
    case NpyType::kInt16:
      return visit(int16_t());
    case NpyType::kInt32:
      return visit(int32_t());
    case NpyType::kInt64:
      return visit(int64_t());
    case NpyType::kBool:
    case NpyType::kUint8:
      return visit(uint8_t());
    case NpyType::kUint16:
      return visit(uint16_t());
    case NpyType::kUint32:
      return visit(uint32_t());
    case NpyType::kUint64:
      break;
  }
  return visit(uint64_t());
}

// The header of an NPY file. The shape has at least one dimension and no extent
// below 1, and the file can hold its data.
struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  Shape shape;
};

// Reads the file up to the first byte of data.
absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file);

}  // namespace tributary
