#pragma once

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/utf8.h"

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
  const absl::string_view shown = text.substr(0, size);
  return absl::StrCat(
      "\"",
      IsUtf8(shown) ? absl::Utf8SafeCEscape(shown) : absl::CHexEscape(shown),
      cut ? "..." : "", "\"");
}

}  // namespace tributary
