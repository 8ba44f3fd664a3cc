// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tributary/v1/data.pb.h"
#include "worker/train/data/batches/batch_loader.h"
#include "worker/train/data/batches/sampler.h"
#include "worker/train/data/dataset.h"

namespace tributary {

// Returns one rank's batches of the training set, which must outlive them. Rows
// in memory come in the order of a ShardedSampler, rows on disk in that of a
// WindowOrder for data.stream.
absl::StatusOr<BatchSource> TrainingBatches(const Dataset& train,
                                            const v1::DataSpec& spec,
                                            const BatchCut& cut, int rank);

// Describes the windows in which rows on disk are shuffled; "" if the order is
// that of rows in memory. The order may not change within an epoch.
std::string WindowsOf(const Dataset& train, const v1::DataSpec& spec);

}  // namespace tributary
