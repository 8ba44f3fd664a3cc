#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tributary {

// True when the text is UTF-8 (RFC 3629), as strings of messages and of JSON
// have to be: no byte astray, the shortest form, no surrogates.
inline bool IsUtf8(absl::string_view text) {
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};  // of 2, 3, 4 bytes
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC0 || lead > 0xF4) return false;
    uint32_t code = lead & (0x3F >> more);
    for (int k = 0; k < more; ++k, ++i) {
      if (i == text.size()) return false;
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xC0) != 0x80) return false;
      code = code << 6 | (byte & 0x3F);
    }
    if (code < kLeast[more - 1] || code > 0x10FFFF ||
        (code >= 0xD800 && code <= 0xDFFF)) {
      return false;
    }
  }
  return true;
}

}  // namespace tributary
