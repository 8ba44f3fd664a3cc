// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_columns.h"

namespace tributary {

// The fields of a table that count as missing: empty ones, "?", and further
// texts. White space around a field does not count. A text that is a number
// matches all its spellings, such as -999 and -999.0.
class MissingFields {
 public:
  MissingFields() = default;
  explicit MissingFields(const std::vector<std::string>& texts);

  bool Contains(absl::string_view field) const;

 private:
  absl::flat_hash_set<std::string> texts_;
  absl::flat_hash_set<double> numbers_;
};

// How a table's missing values are treated. kError: a missing number is an
// error, and a missing category is a category like any other. kSkip: the row is
// left out. Otherwise a missing number is filled, and a missing category
// becomes a block of zeros.
struct CsvMissing {
  enum class Kind { kError, kMean, kMedian, kConstant, kSkip };

  Kind kind = Kind::kError;
  double constant = 0;
  std::vector<std::string> texts = {};  // further texts that count as missing

  bool fills() const { return kind != Kind::kError && kind != Kind::kSkip; }

  friend bool operator==(const CsvMissing&, const CsvMissing&) = default;
};

// Returns the value that replaces a missing one, for each numeric column; empty
// unless `missing` fills. Mean and median are those of the values of `train`,
// in double; the median of an even number of values is the mean of the middle
// two. `train` marks missing values by NaN. `header` is for messages, and
// `roles` names the numeric columns. InvalidArgument: a column has no value at
// all. `parts` visits the training rows, which need not all be in `train`.
absl::StatusOr<std::vector<double>> MeasureFill(
    const CsvMissing& missing, const RawData& train, const RowParts& parts,
    const std::vector<std::string>& header, const CsvColumnRoles& roles);

// Replaces each NaN among the numbers by the value of its column, minus the
// column's offset and rounded to float32. If `fill` is empty, there must be no
// NaN.
void FillMissing(absl::Span<const double> fill, RawData* data);

// True for texts that usually stand for a missing value, such as NA, and for
// infinity, from which nothing can be learned.
bool LooksMissing(absl::string_view field);

// Returns the end of the message about a number that is not as wanted: the
// setting that fills or skips it if it looks missing, else "".
std::string MissingHint(const CsvMissing& missing, absl::string_view field);
// Returns the end of the message about a label that is missing or looks
// missing: the setting that skips its row.
std::string MissingLabelHint(const CsvMissing& missing,
                             absl::string_view field);

}  // namespace tributary
