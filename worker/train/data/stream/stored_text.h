// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/readers/text_reader.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// Reads like ReadText, but keeps the token ids of the samples in a ScratchFile.
// The text may have any number of tokens. Other errors as in ReadText.
absl::StatusOr<StoredRows::Columns> StoreText(const InputFiles& files,
                                              const TextOptions& options,
                                              Vocabulary* vocabulary);

}  // namespace tributary
