// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// Columns as the job file names them: by header name, by number from 0, or by a
// range of numbers such as "0-63". A number that is also a name in the header
// means that name; "" means the columns without a name.
struct CsvColumnNames {
  std::string label;
  // Without numeric and categorical, all columns except label and ignore are
  // numeric.
  std::vector<std::string> numeric;
  std::vector<std::string> categorical;
  std::vector<std::string> ignore;
};

// The use of each column of a file, by number.
struct CsvColumnRoles {
  int label = 0;
  std::vector<int> numeric;      // in the order of the job file
  std::vector<int> categorical;  // in the order of the job file
  // The field of the job file that names a column, as "columns.numeric.2".
  std::map<int, std::string> fields;
  // The job file uses a name of the header that is not a number.
  bool uses_words = false;

  // Returns "" if the job file does not name the column.
  std::string FieldOf(int column) const {
    const auto at = fields.find(column);
    return at == fields.end() ? "" : at->second;
  }
};

// `header` is empty when the file has none. InvalidArgument, naming `file`,
// when a name is unknown or ambiguous, a column is named twice, the label is
// not exactly one column, no feature column is left, or a feature column has no
// name in the header.
absl::StatusOr<CsvColumnRoles> ResolveCsvColumns(
    const CsvColumnNames& names, const std::vector<std::string>& header,
    int num_columns, const std::string& file);

// OK if the columns of `roles` have the same names as in `train`, the header of
// the training file, or if a header is empty. InvalidArgument, with `place`
// (the file and the line of the header), names the first that differs.
absl::Status CheckColumnsAlike(const CsvColumnRoles& roles,
                               const std::vector<std::string>& header,
                               const CsvColumnRoles& train,
                               const std::vector<std::string>& train_header,
                               const std::string& place);

// A column for messages, such as 3 ("age").
std::string CsvColumnText(const std::vector<std::string>& header, int column);

}  // namespace tributary
