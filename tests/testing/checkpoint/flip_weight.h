// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tributary::testing {

// Flips the lowest bit of one element of a parameter in the checkpoint in
// `folder`. The checkpoint stays whole, with the checksums of the new bytes, as
// after a fault of memory before it was written. Its files become one. Only for
// a checkpoint without residuals.
absl::Status FlipWeight(const std::string& folder, int parameter,
                        int64_t element);

}  // namespace tributary::testing
