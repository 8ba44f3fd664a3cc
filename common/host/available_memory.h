// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tributary {

// How much memory this process and its children can still allocate, and the
// files that say so: the machine's MemAvailable and free swap, or the limit of
// one of this process's control groups, if that leaves less. Page cache of a
// group counts as available, because the kernel reclaims it.
struct AvailableMemory {
  uint64_t bytes = 0;
  std::string source;  // "MemAvailable and SwapFree of /proc/meminfo"
};

// nullopt: the kernel does not say. `root`: instead of "/", for tests.
std::optional<AvailableMemory> ReadAvailableMemory(
    const std::string& root = "");

}  // namespace tributary
