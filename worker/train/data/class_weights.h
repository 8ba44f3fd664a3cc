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
// scikit-learn's compute_class_weight("balanced") has it. `classes` are those
// with rows; a class without rows has weight 1.
std::vector<double> BalancedClassWeights(absl::Span<const int64_t> rows);

// The loss with class weights in place of `balanced`, by the rows of `train`;
// any other loss as it is. `classes`: the model's outputs for each label.
// Errors are those of reading rows on disk.
absl::StatusOr<v1::LossSpec> WithClassWeights(const v1::LossSpec& loss,
                                              const Dataset& train,
                                              int64_t classes);

}  // namespace tributary
