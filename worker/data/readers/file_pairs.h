// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_files.h"

namespace tributary {

// A format that keeps samples in one file and their labels in another.
struct FilePairFormat {
  // The rows of a file of samples, from its header.
  std::function<absl::StatusOr<int64_t>(InputFile* samples)> count_rows;
  std::function<absl::StatusOr<RawData>(InputFile* samples, InputFile* labels,
                                        const RowRange& range)>
      read;
};

// Reads a range of the rows of all pairs, in the order of the files. Of files
// outside the range only the header is read. InvalidArgument when there are not
// as many files of labels as of samples, or when the samples of two files
// differ in shape or type.
absl::StatusOr<RawData> ReadFilePairs(const InputFiles& samples,
                                      const InputFiles& labels,
                                      const RowRange& range,
                                      const FilePairFormat& format);

}  // namespace tributary
