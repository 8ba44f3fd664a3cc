// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/status/utf8.h"

namespace tributary {

// Makes foreign text safe for one line of a terminal or a log. Control
// characters, which could move the cursor or forge a line, become spaces; bytes
// that are not UTF-8 become question marks.
inline std::string Printable(absl::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t size = Utf8CharacterSize(text.substr(i));
    const auto first = static_cast<unsigned char>(text[i]);
    const bool control =
        size == 1 ? first < 0x20 || first == 0x7F
                  : size == 2 && first == 0xC2 &&
                        static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (size == 0) {
      line += '?';
    } else if (control) {
      line += ' ';
    } else {
      line.append(text.data() + i, size);
    }
    i += size == 0 ? 1 : size;
  }
  return line;
}

}  // namespace tributary
