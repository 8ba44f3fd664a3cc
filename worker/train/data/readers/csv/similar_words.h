// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "worker/train/data/readers/csv/csv_reader.h"

namespace tributary {

// Returns one sentence for the user about each column of the training table,
// named `table`, in which two words differ only by blanks around them or by
// case, so that they are different classes or categories. named_classes: the
// job lists the classes, so they need no note.
std::vector<std::string> SimilarWordNotes(const std::string& table,
                                          const CsvWords& words,
                                          bool named_classes);

}  // namespace tributary
