// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tributary::testing {

// Flips the lowest bit of one element of a parameter in the checkpoint in
// `folder`, which then is whole, with the checksums of the new bytes: a fault
// of memory before the checkpoint was written. The files of the checkpoint
// become one.
absl::Status FlipWeight(const std::string& folder, int parameter,
                        int64_t element);

}  // namespace tributary::testing
