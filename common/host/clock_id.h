// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// Identifies the monotonic clock of this process. It is equal on all processes
// whose monotonic clocks show the same time, because they run on one machine
// since the same boot and in the same time namespace. 0: unknown.
uint64_t MonotonicClockId();

// The same for these contents of /proc/sys/kernel/random/boot_id and
// /proc/self/timens_offsets, which is empty on kernels without time namespaces.
uint64_t ClockIdOf(const char* boot_id, const char* time_offsets);

}  // namespace tributary
