// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// Read like ReadTrainingCsv and ReadTestCsv, but store the rows on disk: one
// ScratchFile has the numbers, one the categories and one the labels. If
// missing values are to be filled, call StoredRows::Fill afterwards. The errors
// are the same.
absl::StatusOr<StoredRows::Columns> StoreTrainingCsv(const InputFiles& files,
                                                     const CsvOptions& options,
                                                     TargetKind kind,
                                                     CsvWords* words);
absl::StatusOr<StoredRows::Columns> StoreTestCsv(
    const InputFiles& files, const CsvOptions& options, TargetKind kind,
    const CsvWords& words, std::vector<std::string>* warnings);

}  // namespace tributary
