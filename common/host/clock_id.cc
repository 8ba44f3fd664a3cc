// SPDX-License-Identifier: Apache-2.0
#include "common/host/clock_id.h"
#include "common/host/small_file.h"

#include <algorithm>
#include <string>

namespace tributary {
namespace {

// FNV-1a, 64 bits.
uint64_t Hash(uint64_t hash, const char* text) {
  for (; *text != '\0'; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

uint64_t ClockIdOf(const char* boot_id, const char* time_offsets) {
  if (*boot_id == '\0') return 0;
  const uint64_t hash = Hash(Hash(0xcbf29ce484222325, boot_id), time_offsets);
  return std::max<uint64_t>(hash, 1);
}

uint64_t MonotonicClockId() {
  return ClockIdOf(ReadText("/proc/sys/kernel/random/boot_id").c_str(),
                   ReadText("/proc/self/timens_offsets").c_str());
}

}  // namespace tributary
