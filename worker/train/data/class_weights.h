// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tributary/v1/training.pb.h"
#include "worker/train/data/dataset.h"

namespace tributary {

// A weight for each class: rows / (classes * rows of the class), as
// scikit-learn's compute_class_weight("balanced") has it. `classes` counts only
// classes with rows; a class without rows has weight 1.
std::vector<double> BalancedClassWeights(absl::Span<const int64_t> rows);

// Returns `loss` with `balanced` replaced by class weights from the rows of
// `train`, or any other loss unchanged. `classes` is the number of the model's
// outputs for each label. Errors are those of reading rows on disk.
absl::StatusOr<v1::LossSpec> WithClassWeights(const v1::LossSpec& loss,
                                              const Dataset& train,
                                              int64_t classes);

}  // namespace tributary
