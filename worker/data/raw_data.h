#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor.h"

namespace tributary {

// What a loss compares with: cross entropy a class, binary cross entropy 0 or
// 1, squared error real numbers.
enum class TargetKind { kClass, kBinary, kReal };

// Targets of all rows, in the form that the loss takes.
struct Targets {
  TargetKind kind = TargetKind::kClass;
  int64_t width = 1;                     // values per row
  std::vector<int64_t> labels;           // [rows], kClass
  std::vector<float> values;             // [rows, width], kBinary and kReal
  std::vector<std::string> class_names;  // sorted; empty: classes are numbers

  // Adds one value. InvalidArgument says what the kind wants; the caller adds
  // where it stands.
  absl::Status Append(double value);
};

// Samples as a reader delivers them, before normalization.
struct RawData {
  std::string name;  // of the file or generator, for messages
  int64_t rows = 0;
  Shape feature_shape;  // of one sample

  // Numeric features [rows, numeric_width], as bytes or as numbers.
  int64_t numeric_width = 0;
  std::vector<uint8_t> bytes;
  float byte_divisor = 1;  // a byte's value is byte / byte_divisor
  std::vector<float> numbers;

  // One-hot features, after the numeric ones: [rows, code_widths.size()]
  // places within blocks of these widths; -1 is a block of zeros.
  std::vector<int64_t> code_widths;
  std::vector<int32_t> codes;

  Targets targets;
};

// A range of a source's rows; count 0 means to the end.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

// The range in full. InvalidArgument when it does not lie within `available`
// rows or is empty.
absl::StatusOr<RowRange> ResolveRange(const RowRange& range, int64_t available,
                                      const std::string& name);

// "[28, 28]", for messages.
std::string ShapeText(const Shape& shape);

}  // namespace tributary
