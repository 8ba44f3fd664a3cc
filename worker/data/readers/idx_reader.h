#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

// MNIST's format (yann.lecun.com/exdb/mnist): big-endian magic 0x000008NN with
// NN dimensions, NN extents, then bytes. Images have two to four dimensions
// (the first is the sample), labels one. Pixels are scaled to [0, 1]: byte/255.
// InvalidArgument when a file is malformed or the two counts disagree.
absl::StatusOr<RawData> ReadIdx(InputFile* images, InputFile* labels,
                                const RowRange& range, TargetKind kind);

}  // namespace tributary
