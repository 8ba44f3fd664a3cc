// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/schema/case_table.h"
#include "tributary/v1/data.pb.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_missing.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/readers/text_reader.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// Knowledge from the training source, which is read first. The other sources
// are read with its words and its vocabulary.
struct LearnedFromTraining {
  bool training = true;  // the next source is the training source
  CsvWords words;
  Vocabulary vocabulary;
  std::vector<double> offsets;        // for reading the next source (RawData)
  std::vector<std::string> warnings;  // for the user
};

// The functions that read the rows of one kind of data source. Errors name the
// file and the position in it.
struct SourceReader {
  // Reads all rows into memory.
  absl::StatusOr<RawData> (*read)(const v1::DataSource& source, TargetKind kind,
                                  LearnedFromTraining* learned) = nullptr;
  // Opens the same rows, which stay on disk. Null if they are generated.
  absl::StatusOr<StoredRows::Columns> (*store)(
      const v1::DataSource& source, TargetKind kind,
      LearnedFromTraining* learned) = nullptr;
};

// Filled by sources/kinds.
using SourceReaders = CaseTable<const SourceReader*>;

// Returns null if the source has no kind.
const SourceReader* ReaderOf(const v1::DataSource& source);

// The rule for missing values in a table.
CsvMissing MissingOf(const v1::CsvSource& source);

}  // namespace tributary
