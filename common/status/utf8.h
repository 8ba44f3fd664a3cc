// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tributary {

// The length in bytes of the UTF-8 character (RFC 3629) at the start of `text`.
// 0 when there is none: a byte is wrong or missing, the encoding is not the
// shortest, or the code point is a surrogate or too large.
inline size_t Utf8CharacterSize(absl::string_view text) {
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};  // of 2, 3, 4 bytes
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC0 || lead > 0xF4 || text.size() <= more) return 0;
  uint32_t code = lead & (0x3Fu >> more);
  for (size_t k = 1; k <= more; ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    if ((byte & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3F);
  }
  const bool wrong = code < kLeast[more - 1] || code > 0x10FFFF ||
                     (code >= 0xD800 && code <= 0xDFFF);
  return wrong ? 0 : more + 1;
}

// True when the text is UTF-8, as protobuf and JSON strings must be.
inline bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

// The longest prefix of at most `bytes` bytes that does not split a UTF-8
// character.
inline absl::string_view CutUtf8(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace tributary
