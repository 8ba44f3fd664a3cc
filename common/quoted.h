#pragma once

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tributary {

// Foreign text made fit for a message: quoted, escaped, and cut when long.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxBytes = 60;
  size_t size = text.size();
  const bool cut = size > kMaxBytes;
  if (cut) {
    size = kMaxBytes;
    // Not in the middle of a UTF-8 character.
    while (size > 0 && (text[size] & 0xC0) == 0x80) --size;
  }
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, size)),
                      cut ? "..." : "", "\"");
}

}  // namespace tributary
