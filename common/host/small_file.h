// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tributary {

// Reads a file that a command line names. It may be a pipe, as in --job <(...),
// whose writer must be done within `patience`. Errors are sentences that begin
// with the path: NotFound: there is no such file. InvalidArgument: it is a
// folder, may not be read, has more than `max_bytes` bytes, or its writer is
// not done in time.
absl::StatusOr<std::string> ReadSmallFile(
    const std::string& path, size_t max_bytes,
    absl::Duration patience = absl::Seconds(10));

}  // namespace tributary
