// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tributary {

// Raises the soft limit of open files, including connections, to the hard
// limit. Makes a write beyond the limit of a file's size (ulimit -f) an error
// (EFBIG) instead of the end of the process. Call this first in main; child
// processes inherit both.
void PrepareProcessLimits();

// How many files, including connections, this process may have open.
uint64_t FileLimit();

// FailedPrecondition when three quarters of the files that this process may
// open are fewer than `files`, or the process has too little address space for
// gRPC. The message names the limit and its ulimit flag.
absl::Status CheckProcessLimits(uint64_t files);

// How many of the FileLimit() files the connections of peers may take.
uint64_t FilesForPeers();

}  // namespace tributary
