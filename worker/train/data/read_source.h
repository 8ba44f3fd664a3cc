// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/data.pb.h"
#include "worker/train/data/normalization.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/sources/source_reader.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// Reads all rows of a source of a resolved job. Errors name the file and the
// position in it.
absl::StatusOr<RawData> ReadSource(const v1::DataSource& source,
                                   TargetKind kind,
                                   LearnedFromTraining* learned);

// Opens the same rows, which stay on disk. InvalidArgument for generated data.
absl::StatusOr<std::shared_ptr<const StoredRows>> StoreSource(
    const v1::DataSource& source, TargetKind kind,
    LearnedFromTraining* learned);

// Returns the values that replace missing values of `source`. Measures them on
// the training rows, which `parts` visits; `train` has at least one of them.
absl::StatusOr<std::vector<double>> MeasureFill(const v1::DataSource& source,
                                                const RawData& train,
                                                const RowParts& parts,
                                                const CsvWords& words);

NormalizeOptions NormalizeOptionsOf(const v1::DataSource& source);

}  // namespace tributary
