#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tributary {

// Raises the number of files that this process may open to what it is allowed
// to raise it to: each connection is one. Call it first in main; programs that
// this one starts inherit it.
void RaiseFileLimit();

// How many files, connections among them, this process may have open.
uint64_t FileLimit();

// FailedPrecondition, naming the limit and how to change it, when this process
// may open fewer files than `files`, or has too little address space for gRPC.
absl::Status CheckProcessLimits(uint64_t files);

}  // namespace tributary
