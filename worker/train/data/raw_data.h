// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/tensor.h"

namespace tributary {

// The kind of target that a loss takes: a class for cross entropy, 0 or 1 for
// binary cross entropy, a real number for squared error.
enum class TargetKind { kClass, kBinary, kReal };

// The numbers of a column that rounding to float32 has changed.
struct Rounding {
  // The smallest number with 18 significant bits in float32. Differences below
  // it are lost, whatever is subtracted from the numbers.
  static constexpr double kLeast = 0x1p-132;

  int64_t count = 0;  // how many numbers have changed
  double most = 0;    // the largest change; 0: every number kept its value
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  // Rounding to float64, through which all numbers go, had already changed an
  // integer.
  bool in_float64 = false;

  // Counts a number that rounding to float32 has changed.
  void Add(double number, float rounded);
  void Add(const Rounding& other);
  // Whether the differences of these numbers, or of one number and 0, are below
  // kLeast.
  bool is_tiny() const;
};

// Targets of all rows, in the form that the loss takes.
struct Targets {
  TargetKind kind = TargetKind::kClass;
  int64_t width = 1;                     // values per row
  std::vector<int64_t> labels;           // [rows], kClass
  std::vector<float> values;             // [rows, width], kBinary and kReal
  std::vector<std::string> class_names;  // by class; empty: labels are numbers

  std::string name;  // the file of the targets; empty: that of the samples
  Rounding rounding;
  // The greatest class and its place in the file, such as "y.npy: row 7". The
  // place is empty if it is not known.
  int64_t greatest_class = -1;
  std::string greatest_place;

  // Appends one value. InvalidArgument states what the kind wants; the caller
  // adds the position. exact: false for an integer that float64 has rounded to
  // this value.
  absl::Status Append(double value, bool exact = true);
  // Keeps the class and its place if it is above the greatest one so far.
  void Greatest(int64_t label, const std::string& place);
  // Does the same for all labels. place(i) names the place of the i-th label in
  // the file.
  void FindGreatest(const std::function<std::string(int64_t index)>& place);
};

// Samples as a reader delivers them, before normalization.
struct RawData {
  std::string name;  // the file or generator, for messages
  int64_t rows = 0;
  Shape feature_shape;  // of one sample

  // Numeric features [rows, numeric_width], as bytes or as numbers. NaN: a
  // missing value of a table, which FillMissing replaces.
  int64_t numeric_width = 0;
  std::vector<uint8_t> bytes;
  float byte_divisor = 1;  // a byte's value is byte / byte_divisor
  std::vector<float> numbers;
  // Each number is the source's value minus the offset of its column. There is
  // one offset for all columns, or one for each; empty means 0.
  std::vector<double> offsets;
  // One for each numeric column; empty if rounding has changed no number.
  std::vector<Rounding> rounding;

  // One-hot features, which follow the numeric ones. codes: [rows,
  // code_widths.size()], each an index within a block of that width, or -1 for
  // a block of zeros.
  std::vector<int64_t> code_widths;
  std::vector<int32_t> codes;

  // Used instead of all of the above for sequences of token ids below
  // num_tokens. Sample i is the feature_shape[0] tokens from i * token_stride
  // on. Its targets are the same number of classes: the tokens shifted by one.
  std::vector<int32_t> tokens;
  int64_t token_stride = 0;
  int64_t num_tokens = 0;

  Targets targets;  // for token sequences only kind and width

  double offset(size_t column) const {
    if (offsets.size() == 1) return offsets[0];
    return column < offsets.size() ? offsets[column] : 0;
  }
  // Appends the next number of the source. Subtracts its column's offset before
  // rounding. exact: as in Targets::Append.
  void AppendNumber(double number, bool exact = true);
};

// Adds the rounding of a part of the rows.
void AddRounding(const std::vector<Rounding>& part, std::vector<Rounding>* all);

// Appends rows of the same layout: numeric features, codes and targets, with
// their rounding and greatest class. When it appends the first rows, reserves
// memory for `rows` rows at once.
void AppendRows(const RawData& part, int64_t rows, RawData* all);

// Visits rows, in memory or on disk: calls take(part) for parts of them, from
// the first row to the last, and returns its first error.
using RowParts = std::function<absl::Status(
    const std::function<absl::Status(const RawData& part)>& take)>;

// Visits rows in memory, as one part.
inline RowParts PartsOf(const RawData& rows) {
  return [&rows](const auto& take) { return take(rows); };
}

// A range of a source's rows; count 0 means to the end.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Resolves a count of 0. InvalidArgument when the range is empty or not within
// `available` rows.
absl::StatusOr<RowRange> ResolveRange(const RowRange& range, int64_t available,
                                      const std::string& name);

// "[28, 28]", for messages.
std::string ShapeText(const Shape& shape);

}  // namespace tributary
