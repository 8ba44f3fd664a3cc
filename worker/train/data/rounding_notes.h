// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "worker/train/data/dataset.h"
#include "worker/train/data/normalization.h"
#include "worker/train/data/readers/csv/csv_reader.h"

namespace tributary {

// One sentence for the user about each kind of number in the training set that
// float32 rounds so much that different values may become equal: features
// without normalization, targets, and features that even float64 rounds. Names
// the first column of a kind, and says how to keep the differences.
std::vector<std::string> RoundingNotes(const Dataset& train,
                                       const Normalization& normalization,
                                       const CsvWords& words);

}  // namespace tributary
