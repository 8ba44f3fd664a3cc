// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// How much memory this process and its children can still allocate, and the
// files that say so: the machine's MemAvailable and free swap, or the limit of
// one of this process's control groups, if that leaves less. Page cache of a
// group counts as available, because the kernel reclaims it.
struct AvailableMemory {
  uint64_t bytes = 0;
  std::string source;  // "MemAvailable and SwapFree of /proc/meminfo"
};

// Returns nullopt if the kernel does not say. `root` replaces "/" in tests.
std::optional<AvailableMemory> ReadAvailableMemory(
    const std::string& root = "");

// Memory that a process is about to take.
struct MemoryClaim {
  std::string who;  // "server 1"
  uint64_t bytes = 0;
  std::string purpose;  // "weights and gradients"
  std::string remedy;   // "use a smaller model"
};

// FailedPrecondition, with both figures, when less than the claim is available.
// `available` is nullopt when it is unknown: then nothing is refused.
absl::Status CheckClaim(const MemoryClaim& claim,
                        const std::optional<AvailableMemory>& available);

}  // namespace tributary
