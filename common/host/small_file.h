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

// OK: this process may read the file or enter the folder at `path`, or nothing
// is there. InvalidArgument, "PATH cannot be read: Permission denied": whether
// something is there, or what, is not known. Call it before a message says that
// something is missing.
absl::Status CheckReadable(const std::string& path);

// The content of a file, as far as it can be read; empty: there is none. For
// files of runs and of the system, whose readers check the content. Unlike
// std::istreambuf_iterator it does not throw when a read fails, because the
// path is a folder or the process of a file in /proc has ended.
std::string ReadText(const std::string& path);

}  // namespace tributary
