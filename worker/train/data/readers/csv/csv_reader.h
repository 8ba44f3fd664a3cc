// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_columns.h"
#include "worker/train/data/readers/csv/csv_missing.h"
#include "worker/train/data/readers/input_files.h"

namespace tributary {

struct CsvOptions {
  bool header = true;  // the first row names the columns
  // Refuses a first row that looks like data instead of names.
  bool doubt_header = false;
  char delimiter = ',';
  CsvColumnNames columns;
  RowRange range;  // also counts rows that are skipped
  CsvMissing missing;
  std::vector<double> offsets = {};  // as in RawData
  std::vector<std::string> classes;  // in order; empty: sorted labels
};

// The columns and the words of the training file, which the test file must use
// too.
struct CsvWords {
  std::vector<std::string> header;  // empty: the file has none
  int num_columns = 0;
  CsvColumnRoles roles;
  // For each categorical column in order, its words sorted by bytes.
  std::vector<std::vector<std::string>> categories;
  // Class i has the i-th name; empty when the labels are numbers.
  std::vector<std::string> classes;
};

// Reads training files, which all have the same columns, and fills `words`. The
// rows of one file follow those of the file before. Features are the numeric
// columns, then a one-hot block per categorical column. Labels are numbers; if
// any label is not a number that the kind takes, or the options name classes,
// all are words, and class i is the i-th name of the options, or without names
// the i-th sorted word (kBinary needs exactly two). Missing values that are to
// be filled are NaN until FillMissing. InvalidArgument with file, line and
// column for a label that is missing, or looks missing and is not one of the
// named classes, and for a field that is not a finite number where one is
// needed.
absl::StatusOr<RawData> ReadTrainingCsv(const InputFiles& files,
                                        const CsvOptions& options,
                                        TargetKind kind, CsvWords* words);

// Reads test files with the training files' words. An unknown label is an
// error. An unknown category becomes a block of zeros, and each column with
// unknown categories adds one warning.
absl::StatusOr<RawData> ReadTestCsv(const InputFiles& files,
                                    const CsvOptions& options, TargetKind kind,
                                    const CsvWords& words,
                                    std::vector<std::string>* warnings);

}  // namespace tributary
