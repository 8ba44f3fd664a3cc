// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// Samples in some files and the targets of their rows in as many others.
struct ArrayFiles {
  InputFiles samples;
  std::optional<InputFiles> labels;  // none: rows have no targets
  RowRange range;                    // of the rows of all files together
  TargetKind kind = TargetKind::kClass;
};

// The order of reading rows: front to back, or at any place by any number of
// threads. For kRandom, packed files are unpacked into a ScratchFile.
enum class ReadOrder { kSequential, kRandom };

// Opens files of MNIST's format (yann.lecun.com/exdb/mnist): the big-endian
// magic 0x000008NN for NN dimensions, NN extents, then bytes. Images have two
// to four dimensions, of which the first counts samples; labels have one. A
// pixel is byte / 255. InvalidArgument when a file is malformed or does not fit
// the others; an error about labels is about the field `labels`.
absl::StatusOr<StoredRows::Columns> OpenIdx(const ArrayFiles& files,
                                            ReadOrder order);

// The same for NumPy's format (numpy.org/doc/stable/reference/generated/
// numpy.lib.format.html, versions 1 to 3), in C order and little-endian:
// float32, float64, integers of 8 to 64 bits with and without sign, or
// booleans. Features of shape [rows, ...] must be finite as float32; [rows]
// means one feature. uint8 keeps its values, 0 to 255, as do booleans, 0 and 1.
// Labels are [rows], or [rows, width] for kBinary and kReal. `offsets` as in
// RawData.
absl::StatusOr<StoredRows::Columns> OpenNpy(const ArrayFiles& files,
                                            std::vector<double> offsets,
                                            ReadOrder order);

// Opens files of either format, told by their first bytes, for reading front to
// back; bytes are not scaled. no_idx: the error text that says why samples must
// be in NPY files. If it is empty, both formats are accepted.
absl::StatusOr<StoredRows::Columns> OpenArrays(const ArrayFiles& files,
                                               const std::string& no_idx);

}  // namespace tributary
