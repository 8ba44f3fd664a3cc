#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/tensor.h"

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

  // Instead of all these, sequences of token ids below num_tokens: sample i is
  // the feature_shape[0] tokens from i * token_stride on, and its targets, as
  // many classes, are those one further.
  std::vector<int32_t> tokens;
  int64_t token_stride = 0;
  int64_t num_tokens = 0;

  Targets targets;  // of token sequences: kind and width alone
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
