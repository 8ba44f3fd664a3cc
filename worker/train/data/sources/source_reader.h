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

// The training source is read first. The other sources are read with the words
// and the vocabulary that it taught.
struct LearnedFromTraining {
  bool training = true;  // the next source is the training source
  CsvWords words;
  Vocabulary vocabulary;
  std::vector<double> offsets;        // to read the next source with (RawData)
  std::vector<std::string> warnings;  // for the user
};

// How the rows of a kind of data source are read. Errors name the file and the
// position in it.
struct SourceReader {
  // Reads all rows into memory.
  absl::StatusOr<RawData> (*read)(const v1::DataSource& source, TargetKind kind,
                                  LearnedFromTraining* learned) = nullptr;
  // The same rows, which stay on disk. Null: they are generated.
  absl::StatusOr<StoredRows::Columns> (*store)(
      const v1::DataSource& source, TargetKind kind,
      LearnedFromTraining* learned) = nullptr;
};

// Filled by sources/kinds.
using SourceReaders = CaseTable<const SourceReader*>;

// Null: the source has no kind.
const SourceReader* ReaderOf(const v1::DataSource& source);

// The rule for missing values in a table.
CsvMissing MissingOf(const v1::CsvSource& source);

}  // namespace tributary
