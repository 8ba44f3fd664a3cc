// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_files.h"
#include "worker/data/stream/stored_rows.h"

namespace tributary {

// What ReadIdx and ReadNpy (worker/data/readers) read into memory, as rows that
// stay on disk: plain files where they lie, and packed ones in a ScratchFile.
// Errors as there, and in ReadFilePairs. `offsets` as in RawData.
absl::StatusOr<StoredRows::Columns> StoreIdx(const InputFiles& images,
                                             const InputFiles& labels,
                                             const RowRange& range,
                                             TargetKind kind);
absl::StatusOr<StoredRows::Columns> StoreNpy(const InputFiles& features,
                                             const InputFiles& labels,
                                             const RowRange& range,
                                             TargetKind kind,
                                             std::vector<double> offsets = {});

}  // namespace tributary
