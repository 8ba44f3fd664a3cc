// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// The CRC-32C of a file's bytes, as eight hexadecimal digits. Errors as
// FileError.
absl::StatusOr<std::string> FileChecksum(const std::string& path);

}  // namespace tributary
