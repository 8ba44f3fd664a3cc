#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/csv_columns.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

struct CsvOptions {
  bool header = true;  // the first row names the columns
  char delimiter = ',';
  CsvColumnNames columns;
  RowRange range;
};

// The words of the training file, which its test file is read with.
struct CsvWords {
  // Of each categorical column in order, sorted by bytes.
  std::vector<std::vector<std::string>> categories;
  // Sorted; empty when the labels are numbers.
  std::vector<std::string> classes;
};

// A training file. Features are the numeric columns, then a one-hot block for
// each categorical one. Labels are numbers, or, when one of them is not a
// number that the kind takes, words: class i is word i of the sorted ones
// (kBinary wants two). Fills `words`.
// InvalidArgument with file, line and column for each field that is empty, "?"
// or no finite number where a number is wanted.
absl::StatusOr<RawData> ReadTrainingCsv(InputFile* file,
                                        const CsvOptions& options,
                                        TargetKind kind, CsvWords* words);

// A test file, with the training file's words. A label that is not among them
// is an error; a category that is not is a block of zeros, and each column that
// has some adds a sentence to `warnings`.
absl::StatusOr<RawData> ReadTestCsv(InputFile* file, const CsvOptions& options,
                                    TargetKind kind, const CsvWords& words,
                                    std::vector<std::string>* warnings);

}  // namespace tributary
