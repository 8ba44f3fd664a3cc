// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace tributary::fuzz {

// Aborts unless `holds`; libFuzzer keeps the input at which it does.
inline void Expect(bool holds, const char* sentence) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: expected that %s\n", sentence);
  std::abort();
}

// Takes an input apart from the front: any bytes are an input.
class Input {
 public:
  Input(const uint8_t* data, size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  uint8_t Byte() {  // 0 at the end
    const absl::string_view byte = Take(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }
  // Takes a length (two bytes, little-endian), then that many bytes or all that
  // are left. Used where an input holds several files.
  absl::string_view Part() {
    const size_t low = Byte();
    return Take(low | size_t{Byte()} << 8);
  }
  absl::string_view Rest() { return Take(rest_.size()); }

 private:
  absl::string_view Take(size_t size) {
    const absl::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  absl::string_view rest_;
};

}  // namespace tributary::fuzz
