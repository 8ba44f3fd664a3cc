// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/readers/text_reader.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// The result of ReadText, not in memory but as samples whose token ids are in a
// ScratchFile. The text may have any number of tokens. Errors as there.
absl::StatusOr<StoredRows::Columns> StoreText(const InputFiles& files,
                                              const TextOptions& options,
                                              Vocabulary* vocabulary);

}  // namespace tributary
