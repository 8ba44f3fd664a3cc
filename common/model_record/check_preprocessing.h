// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "tributary/v1/preprocessing.pb.h"

namespace tributary {

// InvalidArgument names the field of `preprocessing` that contradicts another:
// features that do not add up to the shape, a deviation that is not positive,
// columns outside the table, categories or tokens that are not sorted.
absl::Status CheckPreprocessing(const v1::Preprocessing& preprocessing);

}  // namespace tributary
