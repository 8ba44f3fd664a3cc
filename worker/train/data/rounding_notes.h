// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "worker/train/data/dataset.h"
#include "worker/train/data/normalization.h"
#include "worker/train/data/readers/csv/csv_reader.h"

namespace tributary {

// One sentence for the user about each kind of number of the training set that
// loses so much in float32 that values which differ may become equal: features
// without normalization, targets, and features that not even float64 holds.
// Names the first column of a kind, and says how to keep the differences.
std::vector<std::string> RoundingNotes(const Dataset& train,
                                       const Normalization& normalization,
                                       const CsvWords& words);

}  // namespace tributary
