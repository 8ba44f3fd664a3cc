#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Columns as the job file names them: by header name, by number from 0, or by
// a range of numbers, "0-63". A header name goes before a number.
struct CsvColumnNames {
  std::string label;
  std::vector<std::string> numeric;      // neither this nor categorical given:
  std::vector<std::string> categorical;  // all but label and ignore are numeric
  std::vector<std::string> ignore;
};

// What each column of a file is for, by number.
struct CsvColumnRoles {
  int label = 0;
  std::vector<int> numeric;      // in the order of the job file
  std::vector<int> categorical;  // likewise
};

// `header` is empty when the file has none. InvalidArgument, naming `file`,
// when a name is unknown or ambiguous, a column is named twice, the label is
// not one column, or no column is left to learn from.
absl::StatusOr<CsvColumnRoles> ResolveCsvColumns(
    const CsvColumnNames& names, const std::vector<std::string>& header,
    int num_columns, const std::string& file);

// "3 (\"age\")", for messages.
std::string CsvColumnText(const std::vector<std::string>& header, int column);

}  // namespace tributary
